// The source that a library has to have; what it is for are the headers that it precompiles.

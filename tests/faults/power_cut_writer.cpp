// Programs whose fate at a power cut is known: the oracle of recorder.cpp and disk.py.
//
//   power_cut_writer FOLDER CASE    (the cases: see below; each ends by killing itself, so that nothing is
//   tidied up)
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/durable.h"
#include "cluster/sockets/curve.h"

namespace {

std::string folder;

std::string in(const char* name) {
  return folder + '/' + name;
}

void require(bool holds) {
  if (!holds) {
    std::perror("power_cut_writer");
    std::exit(1);
  }
}

int make(const char* name, int flags = 0) {
  const int file = ::open(in(name).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
  require(file >= 0);
  return file;
}

void put(int file, const std::string& bytes) {
  require(::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
}

void sync_folder(const char* name = ".") {
  const int opened = ::open(in(name).c_str(), O_RDONLY | O_DIRECTORY);
  require(opened >= 0 && ::fsync(opened) == 0 && ::close(opened) == 0);
}

const std::string kLong(5000, 'x');

const std::map<std::string, void (*)()> kCases = {
    {"nothing_synced", [] { put(make("a"), kLong); }},
    {"data_synced",
     [] {
       const int file = make("a");
       put(file, kLong);
       require(::fsync(file) == 0);
     }},
    {"all_synced",
     [] {
       const int file = make("a");
       put(file, kLong);
       require(::fdatasync(file) == 0);
       sync_folder();
     }},
    {"folder_synced_data_not",
     [] {
       put(make("a"), kLong);
       sync_folder();
     }},
    {"o_dsync",
     [] {
       const int file = make("a", O_DSYNC);
       sync_folder();
       put(file, "one");
       put(file, "two");
     }},
    {"appended_after_sync",
     [] {
       const int file = make("a", O_APPEND);
       put(file, "kept");
       require(::fsync(file) == 0);
       sync_folder();
       put(file, kLong);
     }},
    {"overwritten_after_sync",
     [] {
       const int file = make("a");
       put(file, kLong);
       require(::fsync(file) == 0);
       sync_folder();
       require(::pwrite(file, "yyyy", 4, 510) == 4);
     }},
    // As an editor replaces a file: the old or the new, whole.
    {"replaced_well",
     [] {
       const int file = make(".part-old");
       put(file, "new");
       require(::fsync(file) == 0 && ::rename(in(".part-old").c_str(), in("old").c_str()) == 0);
     }},
    {"replaced_and_synced",
     [] {
       const int file = make(".part-old");
       put(file, "new");
       require(::fsync(file) == 0 && ::rename(in(".part-old").c_str(), in("old").c_str()) == 0);
       sync_folder();
     }},
    {"replaced_without_data",
     [] {
       const int file = make(".part-old");
       put(file, "new");
       require(::rename(in(".part-old").c_str(), in("old").c_str()) == 0);
       sync_folder();
     }},
    {"new_folder_not_synced",
     [] {
       require(::mkdir(in("d").c_str(), 0700) == 0);
       const int file = make("d/a");
       put(file, "kept?");
       require(::fsync(file) == 0);
       sync_folder("d");
     }},
    {"removed_not_synced", [] { require(::unlink(in("old").c_str()) == 0); }},
    {"truncated_not_synced", [] { require(::truncate(in("old").c_str(), 1) == 0); }},
    // What a program does beside plain calls has to be seen, too.
    {"by_the_library",
     [] {
       std::ofstream(in("a")) << kLong;
       std::filesystem::create_directories(in("x/y"));
       std::filesystem::copy_file(in("a"), in("x/y/b"));
       std::filesystem::rename(in("a"), in("c"));
       std::filesystem::remove(in("old"));
       std::filesystem::remove_all(in("x/y"));
       std::filesystem::resize_file(in("c"), 100);
       const int file = make("v");
       const iovec parts[] = {{const_cast<char*>("ab"), 2}, {const_cast<char*>("cd"), 2}};
       require(::writev(file, parts, 2) == 4 && ::posix_fallocate(file, 0, 10) == 0);
       const int copy = ::dup(file);
       put(copy, "!");
     }},
    // What Vigil itself says is kept.
    {"vigils_new_file",
     [] {
       vigil::base::make_folders(folder + "/camera/day");
       vigil::base::NewFile file(folder + "/camera/day/clip");
       file.write(kLong);
       file.commit();
     }},
    {"vigils_key_files",
     [] {
       vigil::cluster::write_key_files(in("key"), {"public", "secret"});
     }},
    // What it cannot see has to be noticed.
    {"unseen",
     [] {
       std::FILE* file = std::fopen(in("a").c_str(), "w");
       require(file != nullptr && std::fputs("unseen", file) >= 0 && std::fflush(file) == 0);
     }},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || !kCases.contains(argv[2])) return 2;
  folder = argv[1];
  kCases.at(argv[2])();
  ::kill(::getpid(), SIGKILL);
}

"""Tails of samples."""

import math


def percentile(values, share):
    """As numpy's default: between the two neighbours, by their distance. `values` ascend."""
    if not values:
        return None
    at = share * (len(values) - 1)
    below = math.floor(at)
    above = min(below + 1, len(values) - 1)
    return values[below] + (values[above] - values[below]) * (at - below)


def of(values, digits=4):
    """count, mean, p50, p95, p99 and max; nothing but the count where there are none."""
    values = sorted(values)
    if not values:
        return {"count": 0}
    figures = {"mean": math.fsum(values) / len(values), "p50": percentile(values, 0.5), "p95": percentile(values, 0.95),
               "p99": percentile(values, 0.99), "max": values[-1]}
    return {"count": len(values), **{key: round(value, digits) for key, value in figures.items()}}

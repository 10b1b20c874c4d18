"""Means, confidence intervals and quantiles for the comparison of two engines, with the standard library only."""

import functools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """A mean over replications with its 95 % confidence interval."""

    mean: float
    low: float
    high: float
    n: int

    @property
    def half(self) -> float:
        """Half the interval's width."""
        return (self.high - self.low) / 2


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and Student's interval; of a single value an interval of no width."""
    n, mean = len(values), statistics.fmean(values)
    if n < 2:
        return Estimate(mean, mean, mean, n)
    half = t_quantile(n - 1) * statistics.stdev(values) / math.sqrt(n)
    return Estimate(mean, mean - half, mean + half, n)


def difference(left: Sequence[float], right: Sequence[float]) -> Estimate:
    """Welch's interval for the difference of two independent means, left - right."""
    gap = statistics.fmean(left) - statistics.fmean(right)
    parts = [statistics.variance(side) / len(side) for side in (left, right)]
    total = sum(parts)
    if total == 0:
        return Estimate(gap, gap, gap, len(left))
    freedom = total**2 / sum(part**2 / (len(side) - 1) for part, side in zip(parts, (left, right)))
    half = t_quantile(freedom) * math.sqrt(total)
    return Estimate(gap, gap - half, gap + half, len(left))


def verdict(gap: Estimate, tolerance: float) -> str:
    """`agrees` if the whole interval of a difference is within the tolerance; `noise` if it contains zero; else `small` or `differs`."""
    if -tolerance <= gap.low and gap.high <= tolerance:
        return "agrees"
    if gap.low <= 0 <= gap.high:
        return "noise"
    return "small" if abs(gap.mean) <= tolerance else "differs"


def t_quantile(freedom: float) -> float:
    """The 0.975 quantile of Student's t: 2.7764 for 4 degrees of freedom, 2.2622 for 9."""
    return _t_quantile(round(freedom, 2))


@functools.cache
def _t_quantile(freedom: float) -> float:
    low, high = 1.9, 64.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_beyond_zero(middle, freedom) < 0.475 else (low, middle)
    return (low + high) / 2


def _t_beyond_zero(x: float, freedom: float) -> float:
    """The probability of 0..x under Student's t, by Simpson's rule."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    steps = 400
    width = x / steps

    def density(at: float) -> float:
        return scale * (1 + at * at / freedom) ** (-(freedom + 1) / 2)

    inner = sum((4 if i % 2 else 2) * density(i * width) for i in range(1, steps))
    return (density(0) + inner + density(x)) * width / 3


def variation(values: Sequence[float]) -> float:
    """The coefficient of variation; 0 of fewer than two values or of nothing but zeros."""
    mean = statistics.fmean(values)
    return statistics.pstdev(values) / mean if len(values) > 1 and mean else 0.0


def jain(values: Sequence[float]) -> float:
    """Jain's fairness index: 1 where all have the same, 1/n where one has all."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0

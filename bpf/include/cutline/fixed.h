/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* Arithmetic in fixed point, for the kernel and for the host.
 *
 * A probability has 60 fractional bits. A product of two 64-bit numbers is taken with all its 128 bits and then shifted, so a product is
 * wrong by less than one unit of its result. eBPF has no floating point, no 128-bit numbers and no signed division. */
#ifndef CUTLINE_FIXED_H
#define CUTLINE_FIXED_H

#include "qdisc.h"

#define CL_INLINE static inline __attribute__((always_inline))
#define CL_NOINLINE static __attribute__((noinline))
/* A function that the kernel's verifier reads once, and not once for each call. Its arguments are numbers, or pointers to one structure. */
#ifdef __bpf__
#define CL_SEPARATE __attribute__((noinline))
#else
#define CL_SEPARATE static __attribute__((unused))
#endif
#define CL_MAX_U64 (~0ULL)
/* Keeps the compiler from knowing a value, so that it does not remove a check that the kernel's verifier needs. */
#define CL_OPAQUE(value) __asm__ volatile("" : "+r"(value))

CL_INLINE cl_u64 cl_min(cl_u64 a, cl_u64 b) { return a < b ? a : b; }
CL_INLINE cl_u64 cl_max(cl_u64 a, cl_u64 b) { return a > b ? a : b; }
/* a - b, or 0 if b is larger. */
CL_INLINE cl_u64 cl_since(cl_u64 a, cl_u64 b) { return a > b ? a - b : 0; }

/* The same, in half the instructions: clang expands a saturating subtraction, as which it takes `cl_since`. It is for Sieve alone, because the kernel's verifier
 * does not come to an end with it in TSQ. */
CL_INLINE cl_u64 cl_since_by_branch(cl_u64 a, cl_u64 b)
{
    cl_u64 difference = a - b;

    CL_OPAQUE(difference);
    return a > b ? difference : 0;
}

/* Returns the lower 32 bits. Clang masks a word by two shifts; it extends a register of 32 bits, which the line of assembler requests, by one move. */
CL_INLINE cl_u64 cl_low(cl_u64 word)
{
    cl_u32 low = word;

#ifdef __bpf__
    __asm__("" : "+w"(low));
#endif
    return low;
}

/* Returns a * b / 2^shift, rounded down; at most 2^64 - 1. 1 <= shift <= 63. */
CL_INLINE cl_u64 cl_mul_shift(cl_u64 a, cl_u64 b, cl_u32 shift)
{
    cl_u64 al = cl_low(a), ah = a >> 32, bl = cl_low(b), bh = b >> 32;
    cl_u64 low = al * bl, middle = ah * bl + (low >> 32), other = al * bh + cl_low(middle);
    cl_u64 high = ah * bh + (middle >> 32) + (other >> 32);

    if (high >> shift)
        return CL_MAX_U64;
    return high << (64 - shift) | (other << 32 | cl_low(low)) >> shift;
}

/* Returns the same of a number `b` below 2^32, with two multiplications in the place of four. 32 <= shift <= 63, so the result fits. */
CL_INLINE cl_u64 cl_mul_shift_small(cl_u64 a, cl_u64 b, cl_u32 shift)
{
    return ((a >> 32) * b + (cl_low(a) * b >> 32)) >> (shift - 32);
}

/* Returns a - a * b / 2^shift, rounded down, for the same numbers. The product is rounded up. */
CL_INLINE cl_u64 cl_lessened(cl_u64 a, cl_u64 b, cl_u32 shift)
{
    cl_u64 rest = a * b << (64 - shift);

    return a - cl_mul_shift_small(a, b, shift) - (rest > 0);
}

/* Bound of a term, of any sign: a probability and two terms together have room in 64 bits. A term beyond 3 decides alone whether the sum is
 * 0 or 1, unless another one beyond 3 has the opposite sign: then both count alike. */
#define CL_TERM (3 * CUTLINE_ONE)

/* Returns gain * (to - from) / 2^shift, rounded towards 0, within -CL_TERM to CL_TERM. */
CL_INLINE cl_s64 cl_gain(cl_u64 gain, cl_u64 to, cl_u64 from, cl_u32 shift)
{
    if (to >= from)
        return (cl_s64)cl_min(cl_mul_shift(gain, to - from, shift), CL_TERM);
    return -(cl_s64)cl_min(cl_mul_shift(gain, from - to, shift), CL_TERM);
}

/* Returns the probability nearest to a number. */
CL_INLINE cl_u64 cl_probability(cl_s64 p)
{
    if (p < 0)
        return 0;
    return cl_min((cl_u64)p, CUTLINE_ONE);
}

/* Returns p + n * step as a probability: n equal steps, of which each is clamped. */
CL_INLINE cl_u64 cl_steps(cl_u64 p, cl_s64 step, cl_u64 n)
{
    cl_u64 size = step < 0 ? -(cl_u64)step : (cl_u64)step, room = step < 0 ? p : CUTLINE_ONE - p;

    if (!size)
        return p;
    if (n > room / size)
        return step < 0 ? 0 : CUTLINE_ONE;
    return step < 0 ? p - n * size : p + n * size;
}

/* Returns the number of bits that are 1, added up in pairs, in fours, in octets and all. A search by branches takes more instructions, and each branch is a
 * path for the kernel's verifier. */
CL_INLINE cl_u32 cl_ones(cl_u64 word)
{
    word -= word >> 1 & 0x5555555555555555ULL;
    word = (word & 0x3333333333333333ULL) + (word >> 2 & 0x3333333333333333ULL);
    word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
    return word * 0x0101010101010101ULL >> 56;
}

/* Returns the number of the lowest bit that is 1, which is that of the zeros below it; the word is not 0. */
CL_INLINE cl_u32 cl_lowest(cl_u64 word) { return cl_ones((word & -word) - 1); }

/* Returns the number of the highest bit that is 1; the word is not 0. All bits below it become 1, and are counted. */
CL_INLINE cl_u32 cl_highest(cl_u64 word)
{
    for (cl_u32 shift = 1; shift < 64; shift *= 2)
        word |= word >> shift;
    return cl_ones(word) - 1;
}

/* Returns a / b with 60 fractional bits, at most 1, by three divisions of 20 bits each, or two of 30. Wrong by less than 2^-42 of itself and 2^-60. */
CL_SEPARATE cl_u64 cl_fraction(cl_u64 a, cl_u64 b)
{
    cl_u64 quotient = 0;

    if (a >= b)
        return CUTLINE_ONE;
    if (!(b >> 34)) {
        a <<= 30;
        quotient = a / b;
        return quotient << 30 | ((a - quotient * b) << 30) / b;
    }
    if (b >> 44) {
        cl_u32 shift = cl_highest(b) - 43;

        a >>= shift;
        b >>= shift;
    }
    for (int i = 0; i < 3; i++) {
        a <<= 20;
        quotient = quotient << 20 | a / b;
        a %= b;
    }
    return cl_min(quotient, CUTLINE_ONE);
}

/* Time of a byte on a link, 2^-32 ns: the rate in bit/s is 1000 to 10^13. Rounded down. */
CL_INLINE cl_u64 cl_byte_time(cl_u64 bps)
{
    cl_u64 whole = 8000000000ULL / bps, rest = 8000000000ULL % bps, high, low;

    /* The rest is below 2^33 and below the rate, so neither shift loses a bit. */
    rest <<= 16;
    high = rest / bps;
    rest = (rest % bps) << 16;
    low = rest / bps;
    return whole << 32 | high << 16 | low;
}

/* Time that bytes take on a link, ns, rounded down; at most 2^54. The number of bytes is below 2^32. */
CL_INLINE cl_u64 cl_drain(cl_u64 byte_time, cl_u64 bytes)
{
    cl_u64 time = bytes * (byte_time >> 32) + (bytes * (byte_time & 0xffffffff) >> 32);

    return cl_min(time, 1ULL << 54);
}

/* Arrival and hint of a packet that waits, in a word: the time in 48 bits, ns, which are 78 hours, and the level of its hint. */
#define CL_STAMP_BITS 16

CL_INLINE cl_u64 cl_stamp(cl_u64 now, cl_u32 level) { return now << CL_STAMP_BITS | level; }

CL_INLINE cl_u32 cl_stamp_level(cl_u64 stamp) { return stamp & 31; }

/* Returns the time from the arrival of a packet to `at`, ns: 0 if `at` is before it, or after it by more than 39 hours. */
CL_INLINE cl_u64 cl_waited(cl_u64 stamp, cl_u64 at)
{
    cl_s64 wait = (cl_s64)((at << CL_STAMP_BITS) - (stamp & ~0ULL << CL_STAMP_BITS));

    return wait > 0 ? (cl_u64)wait >> CL_STAMP_BITS : 0;
}

/* Samples of a law at fixed times, without a timer. */
struct cl_clock {
    cl_u64 next; /* time of the next sample, ns */
};

/* Returns the number of samples that are due at `now`, and moves on to the first one after it. */
CL_INLINE cl_u64 cl_due(struct cl_clock *clock, cl_u64 now, cl_u64 period)
{
    cl_u64 due;

    if (now < clock->next)
        return 0;
    due = (now - clock->next) / period + 1;
    clock->next += due * period;
    return due;
}

#endif

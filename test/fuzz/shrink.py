# SPDX-License-Identifier: Apache-2.0
"""Makes a failing program smaller."""


def shrink(lines, fails):
    """The least part of the program that still fails when any one line of it is left out: removes ever shorter runs."""
    length = len(lines) // 2
    while length > 0:
        begin = 0
        while begin < len(lines):
            candidate = lines[:begin] + lines[begin + length:]
            if fails(candidate):
                lines = candidate
            else:
                begin += length
        length = length // 2 if length > 1 or begin == 0 else 0
    return lines

# SPDX-License-Identifier: Apache-2.0
"""GPT-2 small of the package transformers writes 32 tokens (decoding.py)."""

import transformers

from workloads import decoding


def make(variant):
    return decoding.make(variant, lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config()))

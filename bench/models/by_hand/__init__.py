# SPDX-License-Identifier: Apache-2.0
"""Models written by hand, as their papers and tutorials write them."""

from models.by_hand.diffusion import ROWS as DIFFUSION
from models.by_hand.fields import ROWS as FIELDS
from models.by_hand.generative import ROWS as GENERATIVE
from models.by_hand.images import ROWS as IMAGES
from models.by_hand.tables import ROWS as TABLES

ROWS = [*TABLES, *IMAGES, *GENERATIVE, *DIFFUSION, *FIELDS]

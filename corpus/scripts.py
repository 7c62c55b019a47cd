"""Scripts that write no space between words: there a word may begin anywhere."""

from __future__ import annotations

from typing import Final

__all__ = ["UNSPACED"]

UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, Chinese, Japanese and Korean, as the inside of a character class."""

"""Make the background frequencies of words: `python -m bench.background ENGLISH CHINESE`.

ENGLISH is a list of words and counts (one pair a line), such as SymSpell's `frequency_dictionary_en_82_765.txt` (MIT
licence; Google Books Ngrams, CC BY 3.0). CHINESE has a word, its count and anything else in a line, such as jieba's
`dict.txt` (MIT licence). Written to projections/search/background.npz, which is part of the product: for each hashed
term of projections/vectors/tokens.py, the share of texts of USUAL_TERMS terms that hold it. Terms too rare to tell from
unknown ones are left out.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from projections.search.match import BACKGROUND, LEAST_SHARE
from projections.vectors.tokens import word_terms

USUAL_TERMS = 50


def shares(counted: Iterator[tuple[str, int]]) -> dict[int, float]:
    """For each term, the share of texts that hold it. A Chinese word counts with each of its characters."""
    counts: Counter[int] = Counter()
    total = 0
    for word, count in counted:
        terms = word_terms(word)
        total += count * max(1, len(terms))
        for term in terms:
            counts[term] += count
    return {term: 1 - (1 - count / total) ** USUAL_TERMS for term, count in counts.items()}


def merged(*lists: dict[int, float]) -> dict[int, float]:
    """The terms of several lists. Of two words with one hash, and of one that two languages have, the usual one counts:
    a rare one would make it as rare as an unknown word.
    """
    return {term: max(each.get(term, 0.0) for each in lists) for term in set().union(*lists)}


def read(file: Path) -> Iterator[tuple[str, int]]:
    """The words of a list with their counts."""
    for line in file.read_text(encoding="utf-8-sig").splitlines():
        word, count, *_ = line.split()
        yield word, int(count)


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(prog="python -m bench.background", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("english", type=Path, help="words and counts")
    parser.add_argument("chinese", type=Path, help="words, counts and parts of speech")
    files = parser.parse_args()
    known = merged(shares(read(files.english)), shares(read(files.chinese)))
    kept = {term: share for term, share in sorted(known.items()) if share >= LEAST_SHARE}
    np.savez_compressed(BACKGROUND, terms=np.fromiter(kept, np.uint32), shares=np.fromiter(kept.values(), np.float16))
    print(f"{len(kept):,} of {len(known):,} terms, {BACKGROUND.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

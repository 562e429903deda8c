"""Hostile input, made at random and without end: `python -m tests.fuzz --seconds 60 --seed 1`.

A *kind* (`kinds.KINDS`) makes a case out of a random number generator. A case passes if it ends in a value or in one of
our errors. Workers are processes of their own, so that a crash, a hang or a report of a sanitizer costs one worker and
names the case (`runner`). With the core of `make asan` the sanitizers watch:

    LD_PRELOAD="$(c++ -print-file-name=libasan.so) $(c++ -print-file-name=libstdc++.so.6)" ASAN_OPTIONS=detect_leaks=0 \
      UNDERTOW_CORE=build/asan python -m tests.fuzz
"""

"""Bugs of the strings of pairs: where they lie, and to which word a block belongs."""

from bug import (
    MAPPED_FILE,
    STRINGS,
    VALUE_CODEC,
    WORD,
    drop,
    drop_part,
    swap_part,
    unit,
)

CODEC_UNIT = (unit("src/index/index_common_test", "CodecTest.*"),)
OLD_POOL_UNIT = (unit("src/pool/pool_test", "BadFile.*PairBlocks*"),)

BUGS = [
    swap_part(
        "strings: only the key of a pair in one block is flushed",
        WORD,
        "flush(block, size)",
        "block, size",
        "block, place",
        STRINGS,
    ),
    swap_part(
        "strings: a value in its key's block looks as if it had a block",
        WORD,
        "make_word(offset + place",
        "kInKeyBlock",
        "0",
        CODEC_UNIT,
    ),
    drop_part(
        "strings: a value in its key's block is freed, too",
        VALUE_CODEC,
        "Codec<std::string>::blobs(word)",
        " || in_key_block(word)",
        CODEC_UNIT,
    ),
    swap_part(
        "strings: the value begins inside of the key",
        WORD,
        "return (sizeof(Length)",
        " + alignof(Length) - 1",
        "",
        CODEC_UNIT,
    ),
    drop(
        "strings: check() takes a value in another key's block for sound",
        WORD,
        "if (blob != block",
        CODEC_UNIT,
    ),
    swap_part(
        "strings: check() takes a value that leaves its key's block for sound",
        WORD,
        "validate_block(block, head + length_at",
        "head + length_at(*pool_, blob)",
        "head",
        CODEC_UNIT,
    ),
    drop(
        "strings: a pool does not say that values may lie in blocks of keys",
        MAPPED_FILE,
        "superblock.features |= kPairBlocks",
        OLD_POOL_UNIT,
    ),
]

"""Makes a large model from a small one, of which the small one is a good draft.

    draft_pair.py SMALL LARGE [--layers FACTOR] [--noise PART]

The large model is the small one with FACTOR times as many layers. The weights of the added layers are copies, of which what they add
to the text is multiplied with PART: with 0, both write the same; with more, the small one guesses some of the tokens only. So the
large one takes about FACTOR times as long for a token, and how often the small one is right is chosen. No pair of real models of one
family is as small. Needs nothing but the standard library. Reads GGUF files of the architecture llama with weights in Q4_0, Q4_1 or
Q8_0.
"""

import argparse
import re
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "parts"))

import gguf

# Of each type: the bytes of a block, and the numbers in 16 bits at its beginning that scale it.
TYPES = {2: (18, 1), 3: (20, 2), 8: (34, 1)}
# What adds to the text.
OUTPUTS = ("attn_output.weight", "ffn_down.weight")


def scaled(kind, data, part):
    """The same weights, multiplied."""
    if kind not in TYPES:
        sys.exit("an output of a layer has a type that this program cannot scale")
    size, scales = TYPES[kind]
    # Padding may follow.
    end = len(data) // size * size
    changed = bytearray(data)
    for scale in range(scales):
        at = 2 * scale
        halves = bytearray(end // size * 2)
        halves[0::2], halves[1::2] = data[at:end:size], data[at + 1 : end : size]
        values = struct.unpack(f"<{len(halves) // 2}e", halves)
        halves = struct.pack(f"<{len(values)}e", *(value * part for value in values))
        changed[at:end:size], changed[at + 1 : end : size] = halves[0::2], halves[1::2]
    return bytes(changed)


def enlarged(tensors, factor, part):
    """The tensors with the layers of the small model in their order, and after each its copies."""
    of_layer = re.compile(r"blk\.(\d+)\.(.*)")
    for name, shape, kind, data in tensors:
        match = of_layer.fullmatch(name)
        if not match:
            yield name, shape, kind, data
            continue
        layer, rest = int(match[1]) * factor, match[2]
        yield f"blk.{layer}.{rest}", shape, kind, data
        copy = scaled(kind, data, part) if rest in OUTPUTS else data
        for number in range(1, factor):
            yield f"blk.{layer + number}.{rest}", shape, kind, copy


def main():
    parser = argparse.ArgumentParser(description="Make a large model of which a small one is a good draft.")
    parser.add_argument("small", type=Path)
    parser.add_argument("large", type=Path)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--noise", type=float, default=0.0)
    arguments = parser.parse_args()
    metadata, tensors = gguf.read(arguments.small)
    key = "llama.block_count"
    if key not in metadata:
        sys.exit(f"{arguments.small} is not of the architecture llama")
    layers = struct.unpack("<I", metadata[key][1])[0]
    metadata[key] = (gguf.UINT32, struct.pack("<I", layers * arguments.layers))
    gguf.write(arguments.large, metadata, list(enlarged(tensors, arguments.layers, arguments.noise)))


if __name__ == "__main__":
    main()

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

from random_model import ALIGNMENT, UINT32, Reader, text

# Of each type: the numbers and bytes of a block, and the numbers in 16 bits at its beginning that scale it.
TYPES = {0: (1, 4, 0), 2: (32, 18, 1), 3: (32, 20, 2), 8: (32, 34, 1)}
# What adds to the text.
OUTPUTS = ("attn_output.weight", "ffn_down.weight")


def read(path):
    """The metadata as it is in the file, by name, and the tensors: name, shape, type and bytes."""
    with open(path, "rb") as file:
        data = file.read()
    reader = Reader(data)
    if data[:4] != b"GGUF":
        sys.exit(f"{path} is no GGUF file")
    reader.at = 8
    tensors, entries = reader.number("Q"), reader.number("Q")
    metadata = {}
    for _ in range(entries):
        name, kind = reader.string().decode(), reader.number("I")
        begin = reader.at
        reader.skip(kind)
        metadata[name] = (kind, data[begin : reader.at])
    listed = []
    for _ in range(tensors):
        name = reader.string().decode()
        shape = [reader.number("Q") for _ in range(reader.number("I"))]
        listed.append((name, shape, reader.number("I"), reader.number("Q")))
    start = -(-reader.at // ALIGNMENT) * ALIGNMENT
    found = []
    for name, shape, kind, offset in listed:
        numbers, size, _ = TYPES[kind]
        count = 1
        for length in shape:
            count *= length
        bytes_of = count // numbers * size
        found.append((name, shape, kind, data[start + offset : start + offset + bytes_of]))
    return metadata, found


def scaled(kind, data, part):
    """The same weights, multiplied."""
    _, size, scales = TYPES[kind]
    if not scales:
        sys.exit("an output of a layer has a type that this program cannot scale")
    changed = bytearray(data)
    for scale in range(scales):
        at = 2 * scale
        halves = bytearray(len(data) // size * 2)
        halves[0::2], halves[1::2] = data[at::size], data[at + 1 :: size]
        values = struct.unpack(f"<{len(halves) // 2}e", halves)
        halves = struct.pack(f"<{len(values)}e", *(value * part for value in values))
        changed[at::size], changed[at + 1 :: size] = halves[0::2], halves[1::2]
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


def write(path, metadata, tensors):
    head = bytearray(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)))
    for name, (kind, value) in metadata.items():
        head += text(name.encode()) + struct.pack("<I", kind) + value
    offset = 0
    for name, shape, kind, data in tensors:
        head += text(name.encode()) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        head += struct.pack("<IQ", kind, offset)
        offset += -(-len(data) // ALIGNMENT) * ALIGNMENT
    with open(path, "wb") as file:
        file.write(head + b"\0" * (-len(head) % ALIGNMENT))
        for _, _, _, data in tensors:
            file.write(data + b"\0" * (-len(data) % ALIGNMENT))


def main():
    parser = argparse.ArgumentParser(description="Make a large model of which a small one is a good draft.")
    parser.add_argument("small")
    parser.add_argument("large")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--noise", type=float, default=0.0)
    arguments = parser.parse_args()
    metadata, tensors = read(arguments.small)
    key = "llama.block_count"
    if key not in metadata:
        sys.exit(f"{arguments.small} is not of the architecture llama")
    layers = struct.unpack("<I", metadata[key][1])[0]
    metadata[key] = (UINT32, struct.pack("<I", layers * arguments.layers))
    write(arguments.large, metadata, list(enlarged(tensors, arguments.layers, arguments.noise)))


if __name__ == "__main__":
    main()

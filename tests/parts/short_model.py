"""Makes a GGUF model of the first layers of another one, for tests of what does not depend on the quality of answers.

    short_model.py MODEL LAYERS SHORT

It has the vocabulary, the chat template and the shape of the layers of MODEL, and takes a fraction of its time. Needs nothing but the
standard library.
"""

import os
import re
import struct
import sys
from pathlib import Path

# The sizes of the types of values in the header: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
UINT32, STRING, ARRAY = 4, 8, 9
ALIGNMENT = 32
LAYER = re.compile(rb"blk\.(\d+)\.")


class Reader:
    def __init__(self, data):
        self.data = data
        self.at = 0

    def number(self, form):
        [value] = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return value

    def text(self):
        length = self.number("Q")
        self.at += length
        return self.data[self.at - length : self.at]

    def skip(self, kind):
        if kind == STRING:
            self.text()
        elif kind == ARRAY:
            of, count = self.number("I"), self.number("Q")
            for _ in range(count):
                self.skip(of)
        else:
            self.at += SIZES[kind]


def shortened(data, layers):
    """The bytes of the model with its first layers only."""
    reader = Reader(data)
    if reader.number("I") != 0x46554747 or reader.number("I") != 3:
        sys.exit("!! not a GGUF file of version 3")
    tensors, values = reader.number("Q"), reader.number("Q")
    header = bytearray()
    for _ in range(values):
        began = reader.at
        key, kind = reader.text(), reader.number("I")
        value = reader.at
        reader.skip(kind)
        if key.endswith(b".block_count"):
            if kind != UINT32:
                sys.exit(f"!! {key.decode()} has another type than expected")
            header += data[began:value] + struct.pack("<I", layers)
        elif key == b"general.alignment":
            sys.exit("!! the model has another alignment than usual")
        else:
            header += data[began : reader.at]
    listed = []
    for _ in range(tensors):
        began = reader.at
        name = reader.text()
        dimensions = reader.number("I")
        reader.at += 8 * dimensions + 4
        listed.append((name, data[began : reader.at], reader.number("Q")))
    start = aligned(reader.at)
    ends = sorted(offset for _, _, offset in listed)[1:] + [len(data) - start]
    listed.sort(key=lambda tensor: tensor[2])
    content = bytearray()
    count = 0
    for (name, described, offset), end in zip(listed, ends):
        layer = LAYER.match(name)
        if layer and int(layer[1]) >= layers:
            continue
        header += described + struct.pack("<Q", len(content))
        content += data[start + offset : start + end]
        content += bytes(aligned(len(content)) - len(content))
        count += 1
    head = struct.pack("<IIQQ", 0x46554747, 3, count, values) + header
    return head + bytes(aligned(len(head)) - len(head)) + content


def aligned(position):
    return -(-position // ALIGNMENT) * ALIGNMENT


def make(source, layers, target):
    unfinished = target.with_suffix(".part")
    unfinished.write_bytes(shortened(source.read_bytes(), layers))
    os.replace(unfinished, target)


if __name__ == "__main__":
    make(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))

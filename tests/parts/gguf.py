"""Reads and writes GGUF files: the header as it stands, and the tensors as bytes. Knows nothing of what they mean. Needs nothing but the
standard library.
"""

import struct
import sys

# https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
MAGIC = b"GGUF"
VERSION = 3
ALIGNMENT = 32
UINT32, FLOAT32, BOOL, STRING, ARRAY, UINT64 = 4, 6, 7, 8, 9, 10
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, UINT32: 4, 5: 4, FLOAT32: 4, BOOL: 1, UINT64: 8, 11: 8, 12: 8}


class Reader:
    """Reads the header of a GGUF file. Begins behind the version."""

    def __init__(self, data, path):
        if data[:4] != MAGIC:
            sys.exit(f"!! {path} is no GGUF file")
        self.data, self.at = data, 8

    def number(self, form):
        value = struct.unpack_from("<" + form, self.data, self.at)[0]
        self.at += struct.calcsize("<" + form)
        return value

    def string(self):
        length = self.number("Q")
        self.at += length
        return self.data[self.at - length : self.at]

    def skip(self, kind):
        if kind == STRING:
            self.string()
        elif kind == ARRAY:
            inner, count = self.number("I"), self.number("Q")
            for _ in range(count if inner in (STRING, ARRAY) else 0):
                self.skip(inner)
            self.at += 0 if inner in (STRING, ARRAY) else SIZES[inner] * count
        else:
            self.at += SIZES[kind]


def read(path):
    """The metadata as it is in the file, by name: type and bytes; and the tensors: name, shape, type and bytes, which may end with
    padding."""
    data = path.read_bytes()
    reader = Reader(data, path)
    count, entries = reader.number("Q"), reader.number("Q")
    metadata = {}
    for _ in range(entries):
        name, kind = reader.string().decode(), reader.number("I")
        begin = reader.at
        reader.skip(kind)
        metadata[name] = (kind, data[begin : reader.at])
    if "general.alignment" in metadata:
        sys.exit(f"!! {path} has another alignment than usual")
    tensors = []
    for _ in range(count):
        name = reader.string().decode()
        shape = [reader.number("Q") for _ in range(reader.number("I"))]
        tensors.append((name, shape, reader.number("I"), reader.number("Q")))
    start = aligned(reader.at)
    ends = sorted(offset for *_, offset in tensors)[1:] + [len(data) - start]
    tensors.sort(key=lambda tensor: tensor[3])
    return metadata, [
        (name, shape, kind, data[start + offset : start + end]) for (name, shape, kind, offset), end in zip(tensors, ends)
    ]


def write(path, metadata, tensors):
    head = bytearray(MAGIC + struct.pack("<IQQ", VERSION, len(tensors), len(metadata)))
    for name, (kind, value) in metadata.items():
        head += text(name.encode()) + struct.pack("<I", kind) + value
    offset = 0
    for name, shape, kind, data in tensors:
        head += text(name.encode()) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        head += struct.pack("<IQ", kind, offset)
        offset += aligned(len(data))
    with open(path, "wb") as file:
        file.write(head + bytes(-len(head) % ALIGNMENT))
        for *_, data in tensors:
            file.write(data + bytes(-len(data) % ALIGNMENT))


def text(value):
    return struct.pack("<Q", len(value)) + value


def aligned(position):
    return -(-position // ALIGNMENT) * ALIGNMENT

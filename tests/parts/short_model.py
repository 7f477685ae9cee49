"""Makes a GGUF model of the first layers of another one, for tests of what does not depend on the quality of answers.

It has the vocabulary, the chat template and the shape of the layers of the other, and takes a fraction of its time. Needs nothing but the
standard library.
"""

import os
import re
import struct

import gguf

LAYER = re.compile(r"blk\.(\d+)\.")


def make(source, layers, target):
    metadata, tensors = gguf.read(source)
    architecture = metadata["general.architecture"][1][8:].decode()
    metadata[f"{architecture}.block_count"] = (gguf.UINT32, struct.pack("<I", layers))

    def is_kept(name):
        layer = LAYER.match(name)
        return layer is None or int(layer[1]) < layers

    unfinished = target.with_suffix(".part")
    gguf.write(unfinished, metadata, [tensor for tensor in tensors if is_kept(tensor[0])])
    os.replace(unfinished, target)

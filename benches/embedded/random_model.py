"""Makes a GGUF model of any shape with random weights in Q4_0, to measure speed where no real model of that size is at hand.

    random_model.py vocabulary SOURCE.gguf VOCABULARY.bin
        takes the tokenizer and the chat template from a real model (about 2 MB)
    random_model.py model VOCABULARY.bin OUT.gguf SHAPE
        SHAPE is 135m, 1b or 8b, or LAYERS,WIDTH,HEADS,KV_HEADS,FEED_FORWARD

Speed does not depend on the values of weights; the answers are noise. Needs nothing but the standard library.
"""

import random
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "parts"))

from gguf import ALIGNMENT, FLOAT32, STRING, UINT32, Reader, text

SHAPES = {"135m": (30, 576, 9, 3, 1536), "1b": (16, 2048, 32, 8, 8192), "8b": (32, 4096, 32, 8, 14336)}

F32, Q4_0 = 0, 2
BLOCK, BLOCK_BYTES = 32, 18
# The scale of a block, 0.004 as a half. Larger ones make numbers that overflow in deep models.
SCALE = struct.pack("<e", 0.004)


def take_vocabulary(source, out):
    with open(source, "rb") as file:
        reader = Reader(file.read(64 << 20), source)
    # The number of tensors.
    reader.number("Q")
    tokens, kept = 0, []
    for _ in range(reader.number("Q")):
        start = reader.at
        key, kind = reader.string(), reader.number("I")
        value = reader.at
        reader.skip(kind)
        if key.startswith(b"tokenizer."):
            kept.append(reader.data[start : reader.at])
        if key == b"tokenizer.ggml.tokens":
            tokens = struct.unpack_from("<Q", reader.data, value + 4)[0]
    with open(out, "wb") as file:
        file.write(struct.pack("<QQ", tokens, len(kept)) + b"".join(kept))


def field(key, kind, value):
    packed = {UINT32: lambda: struct.pack("<I", value), FLOAT32: lambda: struct.pack("<f", value),
              STRING: lambda: text(value)}[kind]()
    return text(key.encode()) + struct.pack("<I", kind) + packed


def tensors(vocabulary, layers, width, heads, kv_heads, feed_forward):
    """The name, the rows (none for a vector) and the columns of each."""
    kv_width = width // heads * kv_heads
    yield "token_embd.weight", vocabulary, width
    yield "output_norm.weight", None, width
    yield "output.weight", vocabulary, width
    for layer in range(layers):
        for name, rows, columns in [
            ("attn_norm", None, width), ("attn_q", width, width), ("attn_k", kv_width, width), ("attn_v", kv_width, width),
            ("attn_output", width, width), ("ffn_norm", None, width), ("ffn_gate", feed_forward, width),
            ("ffn_up", feed_forward, width), ("ffn_down", width, feed_forward),
        ]:
            yield f"blk.{layer}.{name}.weight", rows, columns


def size_of(rows, columns):
    return columns * 4 if rows is None else rows * columns // BLOCK * BLOCK_BYTES


def blocks(generator, count):
    data = bytearray(count * BLOCK_BYTES)
    for at, byte in enumerate(SCALE):
        data[at::BLOCK_BYTES] = bytes([byte]) * count
    for at in range(len(SCALE), BLOCK_BYTES):
        data[at::BLOCK_BYTES] = generator.randbytes(count)
    return data


def make_model(vocabulary_file, out, shape):
    layers, width, heads, kv_heads, feed_forward = shape
    with open(vocabulary_file, "rb") as file:
        saved = file.read()
    vocabulary, fields = struct.unpack_from("<QQ", saved)
    settings = [
        field("general.architecture", STRING, b"llama"), field("general.name", STRING, b"random"),
        field("general.file_type", UINT32, 2), field("general.quantization_version", UINT32, 2),
        field("llama.block_count", UINT32, layers), field("llama.context_length", UINT32, 32768),
        field("llama.embedding_length", UINT32, width), field("llama.feed_forward_length", UINT32, feed_forward),
        field("llama.attention.head_count", UINT32, heads), field("llama.attention.head_count_kv", UINT32, kv_heads),
        field("llama.attention.layer_norm_rms_epsilon", FLOAT32, 1e-5), field("llama.rope.freq_base", FLOAT32, 500000.0),
        field("llama.rope.dimension_count", UINT32, width // heads), field("llama.vocab_size", UINT32, vocabulary),
    ]
    listed = list(tensors(vocabulary, layers, width, heads, kv_heads, feed_forward))
    header = bytearray(b"GGUF" + struct.pack("<IQQ", 3, len(listed), len(settings) + fields))
    header += b"".join(settings) + saved[16:]
    offset = 0
    for name, rows, columns in listed:
        shape = [columns] if rows is None else [columns, rows]
        header += text(name.encode()) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        header += struct.pack("<IQ", F32 if rows is None else Q4_0, offset)
        offset += -(-size_of(rows, columns) // ALIGNMENT) * ALIGNMENT
    generator = random.Random(0)
    with open(out, "wb") as file:
        file.write(header + b"\0" * (-len(header) % ALIGNMENT))
        for _, rows, columns in listed:
            if rows is None:
                data = struct.pack("<f", 1.0) * columns
            else:
                data = blocks(generator, rows * columns // BLOCK)
            file.write(data)
            file.write(b"\0" * (-len(data) % ALIGNMENT))


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["vocabulary"] and len(arguments) == 3:
        take_vocabulary(*arguments[1:])
    elif arguments[:1] == ["model"] and len(arguments) == 4:
        shape = SHAPES.get(arguments[3]) or tuple(int(number) for number in arguments[3].split(","))
        make_model(arguments[1], arguments[2], shape)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()

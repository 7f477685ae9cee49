"""llama.cpp's server with the command line of `llama-server`. Run it through the script `llama-server` beside this file.

Knows nothing of Hob. It ends on SIGTERM or SIGINT, and by itself when the process that started it is gone, so that a
killed test leaves no server behind.
"""

import argparse
import os
import signal
import sys
import time

PARENT_CHECK_SECONDS = 0.25
HTTP_THREADS = 64


class Arguments(argparse.ArgumentParser):
    def error(self, message):
        # llama-server ends with 1 where argparse would end with 2.
        fail(message)


def fail(message):
    print(f"llama-server: {message}", file=sys.stderr, flush=True)
    sys.exit(1)


def parse_arguments():
    parser = Arguments(prog="llama-server", allow_abbrev=False)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("-m", "--model", required=True, metavar="FILE")
    parser.add_argument("-a", "--alias", help="name of the model in the API; the file's name by default")
    parser.add_argument("-c", "--ctx-size", type=int, default=0, help="tokens; 0 takes the model's own")
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("-np", "--parallel", type=int, default=4, help="requests answered at the same time")
    return parser.parse_args()


def server_parameters(arguments):
    from xllamacpp import CommonParams

    params = CommonParams()
    params.model.path = arguments.model
    params.model_alias = {arguments.alias or os.path.basename(arguments.model)}
    params.hostnames = [arguments.host]
    params.port = arguments.port
    params.n_ctx = arguments.ctx_size
    params.n_parallel = arguments.parallel
    # The slots share one context, as in llama-server by default.
    params.kv_unified = True
    # A connection has a thread until it closes, also while it is idle. Beyond these threads the server may leave a
    # request waiting until another connection closes.
    params.n_threads_http = HTTP_THREADS
    for cpu in (params.cpuparams, params.cpuparams_batch):
        cpu.n_threads = arguments.threads
    params.use_jinja = True
    return params


def main():
    parent = os.getppid()
    arguments = parse_arguments()
    if not os.path.isfile(arguments.model):
        fail(f"no model file at '{arguments.model}'")
    try:
        from xllamacpp import Server

        server = Server(server_parameters(arguments))
    except Exception as error:
        fail(f"cannot serve '{arguments.model}' on {arguments.host}:{arguments.port}: {error}")
    # Without waiting for running answers: the native threads would hold the interpreter until the last one ends.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
    # After that, because a test may send a signal at once.
    print(f"llama-server: listening on {server.listening_address}", file=sys.stderr, flush=True)
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_SECONDS)
    os._exit(0)


if __name__ == "__main__":
    main()

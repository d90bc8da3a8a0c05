#!/usr/bin/python3
"""An example of a plug-in (docs/plugins.md): a device with two operations.

    sha256 FILE RESULT [TIMES]    writes the SHA-256 of a file as 64 digits
    crc32 FILE RESULT [TIMES]     writes the CRC-32 of a file as 8 digits

Both compute it so many times, without TIMES once, and look for a `cancel` in between.

Both are computed on the processor, and the description says so. A plug-in for hardware has the same
loop, and calls the hardware's library where this program calls hashlib and zlib.

The plug-in also multiplies matrices, so that the market can challenge the speed that it claims.
"""
import array
import hashlib
import json
import operator
import select
import sys
import time
import zlib

PROBE_SIDE = 96
PROBE_SECONDS = 0.2


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def crc32(data):
    return format(zlib.crc32(data), "08x")


OPERATIONS = {"sha256": sha256, "crc32": crc32}


def describe():
    return {
        "bourse": 1,
        "name": "example: checksums computed on the processor",
        "kind": "cpu",
        "vendor": "example",
        "model": "checksum",
        "memory": None,
        "operations": sorted(OPERATIONS),
        "challenge": "gemm_fp32",
        "features": ["cancel"],
    }


def product_of(left, right, side):
    """Returns the product of two matrices, which have their rows one behind the other."""
    rows = [left[i * side : (i + 1) * side] for i in range(side)]
    columns = [right[j::side] for j in range(side)]
    return array.array(
        "f", (sum(map(operator.mul, row, column)) for row in rows for column in columns)
    )


def probe():
    """Measures the operations a second of such products."""
    factor = array.array("f", (i % 7 for i in range(PROBE_SIDE * PROBE_SIDE)))
    began, rounds, took = time.monotonic(), 0, 0.0
    while took < PROBE_SECONDS:
        product_of(factor, factor, PROBE_SIDE)
        rounds += 1
        took = time.monotonic() - began
    return {"gemm_fp32": rounds * 2 * PROBE_SIDE**3 / took}


def load(name, count):
    numbers = array.array("f")
    with open(name, "rb") as file:
        numbers.fromfile(file, count)
    return numbers


def multiply(request):
    side = request["side"]
    try:
        left = load(request["left"], side * side)
        right = load(request["right"], side * side)
        with open(request["product"], "wb") as file:
            product_of(left, right, side).tofile(file)
    except (OSError, EOFError) as error:
        return {"status": 1, "text": str(error)}
    return {"status": 0}


def is_cancelled():
    """Returns true when a line waits. While an operation runs, that is `cancel` alone."""
    return bool(select.select([sys.stdin], [], [], 0)[0])


def run(operation, arguments):
    if len(arguments) not in (2, 3):
        return {"status": 2, "text": f"write {operation} FILE RESULT [TIMES]"}
    try:
        with open(arguments[0], "rb") as file:
            data = file.read()
        for _ in range(int(arguments[2]) if len(arguments) == 3 else 1):
            if is_cancelled():
                return {"status": 1, "text": "cancelled"}  # the answer to `run`
            digits = OPERATIONS[operation](data)
        with open(arguments[1], "w", encoding="ascii") as file:
            file.write(digits + "\n")
    except OSError as error:
        return {"status": 1, "text": f"{error.filename}: {error.strerror}"}
    return {"status": 0, "text": digits}


def main():
    for line in iter(sys.stdin.readline, ""):
        request = json.loads(line)
        if request["do"] == "cancel":  # it has no answer of its own
            continue
        if request["do"] == "describe":
            answer = describe()
        elif request["do"] == "probe":
            answer = probe()
        elif request["do"] == "multiply":
            answer = multiply(request)
        elif request["do"] == "run":
            answer = run(request["operation"], request["arguments"])
        else:  # `figures`, and requests of later versions: this device answers nothing
            answer = {}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()

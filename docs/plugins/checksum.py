#!/usr/bin/python3
"""An example of a plug-in (docs/plugins.md): a device with two operations.

    sha256 FILE RESULT    writes the SHA-256 of a file as 64 digits
    crc32 FILE RESULT     writes the CRC-32 of a file as 8 digits

Both are computed on the processor, and the description says so. A plug-in for hardware has the same
loop, and calls the hardware's library where this program calls hashlib and zlib.
"""
import hashlib
import json
import sys
import zlib


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
    }


def run(operation, arguments):
    if len(arguments) != 2:
        return {"status": 2, "text": f"write {operation} FILE RESULT"}
    try:
        with open(arguments[0], "rb") as file:
            digits = OPERATIONS[operation](file.read())
        with open(arguments[1], "w", encoding="ascii") as file:
            file.write(digits + "\n")
    except OSError as error:
        return {"status": 1, "text": f"{error.filename}: {error.strerror}"}
    return {"status": 0, "text": digits}


def main():
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "describe":
            answer = describe()
        elif request["do"] == "run":
            answer = run(request["operation"], request["arguments"])
        else:  # `probe`, `figures`, and requests of later versions: this device answers nothing
            answer = {}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()

/* This program runs one WASM module on Node.js, inside the jail of a subtask.
 *
 *     node FLAGS bourse-wasm.cjs [-e NAME=VALUE]... -- MODULE [ARGUMENT]...
 *     node FLAGS bourse-wasm.cjs --trial
 *
 * The module is a command of WASI preview 1. The module has its arguments, the variables given,
 * the standard streams, and one folder, which is the current one. The exit code is the module's.
 * A module that cannot run, and a trap, print one line that begins with "bourse-wasm: " to
 * standard error, and exit with UNUSABLE or TRAPPED (provider/executors/wasm.h). */
'use strict';

const fs = require('node:fs');
const { WASI } = require('node:wasi');

const PREVIEW = 'wasi_snapshot_preview1';
const UNUSABLE = 126;
const TRAPPED = 134;
const PAGE_BYTES = 65536;
const FIELD_BYTES = 8; /* "\0asm", then the version and the layer */

/* A module that writes "wasm" and a line's end to standard output. wat2wasm made the bytes. */
const TRIAL = 'AGFzbQEAAAABDAJgBH9/f38Bf2AAAAIjARZ3YXNpX3NuYXBzaG90X3ByZXZpZXcxCGZkX3dyaXRlAAADAgEBBQMBAAEHEwIGbWVtb3J5AgAGX3N0YXJ0AAEKHQEbAEEAQRA2AgBBBEEFNgIAQQFBAEEBQQgQABoLCwsBAEEQCwV3YXNtCg==';

class Unusable extends Error {}

function end(code, text) {
    fs.writeSync(2, `bourse-wasm: ${text.replace(/[\r\n]+/g, ' ')}\n`);
    process.exit(code);
}

/* Returns the name of the module, its variables and its arguments, from this program's words. */
function readWords(words) {
    const env = {};
    let at = 0;
    while (words[at] === '-e' && at + 1 < words.length) {
        const text = words[at + 1];
        const equals = text.indexOf('=');
        env[text.slice(0, equals)] = text.slice(equals + 1);
        at += 2;
    }
    if (words[at] !== '--' || at + 1 >= words.length) {
        throw new Unusable('no module is named');
    }
    return { env, args: words.slice(at + 1) };
}

function checkHead(bytes) {
    if (bytes.length < FIELD_BYTES || bytes.readUInt32BE(0) !== 0x0061736d) {
        throw new Unusable('the file is no WASM module: it does not begin with \\0asm');
    }
    if (bytes.readUInt16LE(6) !== 0) {
        throw new Unusable('the file is a component, and this engine runs core modules alone');
    }
}

/* Reads an unsigned number of the format, seven bits a byte. Returns it with the place behind. */
function readNumber(bytes, at) {
    let value = 0;
    for (let scale = 1; at < bytes.length; scale *= 128) {
        const byte = bytes[at++];
        value += (byte & 127) * scale;
        if (byte < 128) {
            break;
        }
    }
    return [value, at];
}

/* Returns how many pages of memory the module has at its start; 0 when its bytes do not say. */
function pagesAtStart(bytes) {
    const MEMORY_SECTION = 5;
    for (let at = FIELD_BYTES; at < bytes.length;) {
        const id = bytes[at];
        const [size, body] = readNumber(bytes, at + 1);
        if (id === MEMORY_SECTION) {
            const [, flags] = readNumber(bytes, body);
            return readNumber(bytes, flags + 1)[0];
        }
        at = body + size;
    }
    return 0;
}

function mib(pages) {
    return Math.ceil((pages * PAGE_BYTES) / 1048576);
}

/* Says that the engine gives the module no memory. The agent bounds the pages by a flag. */
function memoryProblem(bytes) {
    const flag = /--wasm-max-mem-pages=(\d+)/.exec(process.execArgv.join(' '));
    const most = flag === null ? 65536 : Number(flag[1]);
    return `out of memory: the module wants ${mib(pagesAtStart(bytes))} MiB at its start, and the` +
        ` subtask has ${mib(most)} MiB for it (limits: memory)`;
}

function checkImports(module, has) {
    for (const wanted of WebAssembly.Module.imports(module)) {
        if (wanted.module === 'wasi_unstable') {
            throw new Unusable('the module is for WASI of before preview 1 (wasi_unstable);' +
                ' build it again with a newer compiler');
        }
        const known = wanted.module === PREVIEW && wanted.kind === 'function' &&
            Object.prototype.hasOwnProperty.call(has, wanted.name);
        if (!known) {
            throw new Unusable(`the module imports the ${wanted.kind} ${wanted.module}.` +
                `${wanted.name}, which WASI preview 1 does not have`);
        }
    }
}

function checkExports(module) {
    const kinds = new Map(WebAssembly.Module.exports(module).map((e) => [e.name, e.kind]));
    if (kinds.get('_start') !== 'function') {
        throw new Unusable('the module has no function _start, so it is a library and no program');
    }
    if (kinds.get('memory') !== 'memory') {
        throw new Unusable('the module does not export its memory, as WASI demands');
    }
}

function compile(bytes) {
    checkHead(bytes);
    try {
        return new WebAssembly.Module(bytes);
    } catch (error) {
        throw new Unusable(`the engine does not take the module: ${error.message}`);
    }
}

function instantiate(module, imports, bytes) {
    try {
        return new WebAssembly.Instance(module, { [PREVIEW]: imports });
    } catch (error) {
        if (error instanceof WebAssembly.RuntimeError) { /* of a start section or a segment */
            throw error;
        }
        throw new Unusable(/out of memory/i.test(error.message) ? memoryProblem(bytes) :
            `the module does not link: ${error.message}`);
    }
}

/* Returns the exit code of the module. */
function run(bytes, args, env, preopens) {
    const wasi = new WASI({ version: 'preview1', args, env, preopens, returnOnExit: true });
    const module = compile(bytes);
    checkImports(module, wasi.wasiImport);
    checkExports(module);
    return wasi.start(instantiate(module, wasi.wasiImport, bytes));
}

function trapText(error) {
    if (error instanceof RangeError && /call stack/i.test(error.message)) {
        return 'the module trapped: its calls are nested too deeply';
    }
    return `the module trapped: ${error.message}`;
}

function main(words) {
    if (words[0] === '--trial') {
        const code = run(Buffer.from(TRIAL, 'base64'), ['trial'], {}, {});
        fs.writeSync(1, `node ${process.version}\n`);
        return code;
    }
    const { env, args } = readWords(words);
    let bytes;
    try {
        bytes = fs.readFileSync(args[0]);
    } catch (error) {
        throw new Unusable(`the module cannot be read: ${error.message}`);
    }
    return run(bytes, args, env, { '.': '.', '/work': '.' });
}

try {
    process.exit(main(process.argv.slice(2)));
} catch (error) {
    if (error instanceof Unusable) {
        end(UNUSABLE, error.message);
    } else if (error instanceof WebAssembly.RuntimeError || error instanceof RangeError) {
        end(TRAPPED, trapText(error));
    } else {
        end(UNUSABLE, `the engine failed: ${error.message}`);
    }
}

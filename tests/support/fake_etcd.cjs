// A stand-in for a member of etcd, for tests: fake_etcd.cjs FOLDER VERSION ALARM MODE. It speaks gRPC over HTTP/2 and TLS with
// the certificates in FOLDER, says that it is of VERSION and has ALARM (0 none, 1 NOSPACE, 2 CORRUPT), and answers transactions by
// MODE. Its first line of output is its port. It ends with its standard input.
const fs = require("fs");
const http2 = require("http2");
const [folder, version, alarm, mode] = process.argv.slice(2);
const file = (name) => fs.readFileSync(`${folder}/${name}`);
const frame = (bytes) => {
    const head = Buffer.alloc(5);
    head.writeUInt32BE(bytes.length, 1);
    return Buffer.concat([head, bytes]);
};
const field = (number, bytes) => Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes]);
const header = field(1, Buffer.from([0x08, 42, 0x10, 1, 0x18, 1])); // cluster 42, member 1, revision 1
const answers = {
    "/etcdserverpb.Maintenance/Status": () => [Buffer.concat([header, field(2, Buffer.from(version)), Buffer.from([0x20, 1])]), "0", ""],
    "/etcdserverpb.Maintenance/Alarm": () =>
        [alarm === "0" ? Buffer.alloc(0) : field(2, Buffer.from([0x08, 1, 0x10, Number(alarm)])), "0", ""],
    "/etcdserverpb.KV/Txn": () =>
        ({
            taken: [Buffer.concat([header, Buffer.from([0x10, 1])]), "0", ""],
            full: [null, "8", "etcdserver: mvcc: database space exceeded"],
            leaderless: [null, "14", "etcdserver: no leader"],
            forbidden: [null, "7", "etcdserver: permission denied"],
            large: [null, "3", "etcdserver: request is too large"],
            garbage: [Buffer.from([0x0a, 9, 9]), "0", ""],
        })[mode],
};
const server = http2.createSecureServer({
    cert: file("server.pem"), key: file("server.key"), ca: file("ca.pem"), requestCert: true, rejectUnauthorized: true,
});
server.on("stream", (stream, headers) => {
    stream.on("error", () => {});
    stream.resume();
    stream.on("end", () => {
        if (mode === "web" && headers[":path"].endsWith("Txn")) {
            stream.respond({ ":status": 404 });
            stream.end("no such page");
            return;
        }
        const answer = answers[headers[":path"]]();
        if (answer === undefined) {
            return; // the mode `silent`: no answer, ever
        }
        stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
        stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": answer[1], "grpc-message": answer[2] }));
        stream.end(answer[0] === null ? undefined : frame(answer[0]));
    });
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.on("end", () => process.exit(0)).resume();

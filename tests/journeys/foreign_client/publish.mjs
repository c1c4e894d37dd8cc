// A producer in another language, with nothing of the ledger's but its reference: a subject, an envelope,
// and the writer's credentials. Publishes a good event, the same again, a malformed one and another good one;
// prints what the broker answered as one line of JSON.
import { connect } from "@nats-io/transport-node";
import { jetstream } from "@nats-io/jetstream";

const { NATS_URL: servers, NATS_USER: user, NATS_PASSWORD: pass } = process.env;

// Letters, digits, "_" and "-" stand for themselves in a subject, every other byte is "=XX".
const token = (text) =>
  text === ""
    ? "="
    : [...new TextEncoder().encode(text)]
        .map((byte) =>
          /[A-Za-z0-9_-]/.test(String.fromCharCode(byte))
            ? String.fromCharCode(byte)
            : "=" + byte.toString(16).toUpperCase().padStart(2, "0"),
        )
        .join("");

const event = (number, itemId, data) => ({
  subject: ["ledger", "default", "knowledge", itemId, "saved", "agent", "node.js 客户端"]
    .map((part, index) => (index < 3 ? part : token(part)))
    .join("."),
  body: {
    specversion: "1.0",
    id: `foreign-${number}`,
    type: "knowledge.saved",
    source: "urn:example:foreign-client",
    subject: `knowledge/${itemId}`,
    time: new Date().toISOString(),
    datacontenttype: "application/json",
    dataschema: "urn:kledger:knowledge.saved:2",
    actor: "agent:node.js 客户端",
    traceid: "trace-foreign",
    messageid: `message-${number}`,
    data,
  },
});

const item = (task, content) => ({
  types: ["tool"],
  task,
  content,
  tags: { category: "foreign" },
  scopes: ["public"],
  owner: "agent:node.js 客户端",
});

const first = event(1, "foreign/知识.1", item("压缩图片", "用 sharp 库把 PNG 转成 WebP，体积约减半。"));
const malformed = event(2, "foreign-2", { types: "tool", task: "no content and no list of types" });
const next = event(3, "foreign-3", item("Compress images", "The sharp library turns PNG into WebP quickly."));

const connection = await connect({ servers, user, pass });
const js = jetstream(connection);
const publish = async ({ subject, body }) => {
  const { stream, seq, duplicate } = await js.publish(subject, JSON.stringify(body), { msgID: body.id });
  return { stream, seq, duplicate };
};
const answers = {
  first: await publish(first),
  again: await publish(first),
  malformed: await publish(malformed),
  next: await publish(next),
};
await connection.drain();
console.log(JSON.stringify(answers));

// Uses every part of the client in plain JavaScript, without Node. `options` and `report` are
// globals of its environment.
import { connect, NotFound, pushReceiver, verifyPush } from "@restante/client"

const client = connect(options)
const results = {}

const published = await client.publish("Grüße", { disposition: "attachment; filename=\"a.txt\"" })
const content = await client.get(published.href)
results.content = await content.response.text()
results.etag = content.etag !== undefined
const blob = await client.publish(new Blob([Uint8Array.of(1, 2)], { type: "image/x" }))
results.type = (await client.get(blob.href, { range: { from: 1 } })).type

const { href, mailbox, password } = await client.openMailbox({ title: "Bare" })
const received = []
const watching = (async () => {
  for await (const { description } of client.mailbox(href, { password }).watch()) {
    received.push(description)
    if (received.length === 3) break
  }
})()
await mailbox.deposit({ description: "one", url: published.href })
const sent = await client.send({ to: href, description: "two", url: published.href })
results.sent = (await sent.wait()).status
await mailbox.deposit({ description: "three", content: { type: "text/plain", data: "inline" } })
await watching
results.received = received.sort()
results.read = (await mailbox.read({ limit: 2 })).more

const session = await client.beginSession()
results.session =
  (await session.walk((question) => question.includes("name") ? "Arthur" : "Grail")).outcome

try {
  await client.mailbox("nowhere").read()
} catch (error) {
  results.problem = [error instanceof NotFound, error.status, error.title]
}

const stop = new AbortController()
const ended = client.mailbox(href).watch({ after: "now", signal: stop.signal })
setTimeout(() => stop.abort(), 50)
try {
  for await (const one of ended) results.unexpected = one
} catch (error) {
  results.aborted = error.name
}

// The scenario signs by Web Crypto, as the client only verifies.
const bytes = Uint8Array.from({ length: 32 }, (_, n) => n)
const secret = `whsec_${btoa(String.fromCharCode(...bytes))}`
const algorithm = { name: "HMAC", hash: "SHA-256" }
const key = await crypto.subtle.importKey("raw", bytes, algorithm, false, ["sign"])
const time = Math.floor(Date.now() / 1000)
const body = `<changed mailbox="${href}" time="t"><deleted/></changed>`
const signature = new Uint8Array(
  await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(`m.${time}.${body}`))
)
const headers = {
  "webhook-id": "m",
  "webhook-timestamp": String(time),
  "webhook-signature": `v1,${btoa(String.fromCharCode(...signature))}`
}
results.push = (await verifyPush({ headers, body }, secret)).deleted
const receive = pushReceiver({ secrets: secret, mailboxes: href, onPush: () => {} })
const request = new Request("http://callback.test/", { method: "POST", headers, body })
results.receiver = (await receive(request)).status

report(JSON.stringify(results))

// A bit of everything, in plain JavaScript, for places without Node. `options` and `report` are
// globals there.
import { connect, NotFound, pushReceiver, verifyPush } from "restante/client"

const client = connect(options)
const told = {}

const published = await client.publish("Grüße", { disposition: "attachment; filename=\"a.txt\"" })
const content = await client.get(published.href)
told.content = await content.response.text()
told.etag = content.etag !== undefined
const blob = await client.publish(new Blob([Uint8Array.of(1, 2)], { type: "image/x" }))
told.type = (await client.get(blob.href, { range: { from: 1 } })).type

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
told.sent = (await sent.wait()).status
await mailbox.deposit({ description: "three", content: { type: "text/plain", data: "inline" } })
await watching
told.received = received.sort()
told.read = (await mailbox.read({ limit: 2 })).more

const session = await client.beginSession()
told.session =
  (await session.walk((question) => question.includes("name") ? "Arthur" : "Grail")).outcome

try {
  await client.mailbox("nowhere").read()
} catch (error) {
  told.problem = [error instanceof NotFound, error.status, error.title]
}

const stop = new AbortController()
const ended = client.mailbox(href).watch({ after: "now", signal: stop.signal })
setTimeout(() => stop.abort(), 50)
try {
  for await (const one of ended) told.unexpected = one
} catch (error) {
  told.aborted = error.name
}

// Signed by Web Crypto itself: the client only verifies.
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
told.push = (await verifyPush({ headers, body }, secret)).deleted
const receive = pushReceiver({ secrets: secret, mailboxes: href, onPush: () => {} })
const request = new Request("http://callback.test/", { method: "POST", headers, body })
told.receiver = (await receive(request)).status

report(JSON.stringify(told))

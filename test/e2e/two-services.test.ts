/** Two independent services, and operations on resources of both. */
import { afterAll, beforeAll, expect, it } from "vitest"
import { type Answer, asAdmin, childOf, expectStatus, listMailbox, mailboxOf, notification,
  parseXml, postXml, putXml, send } from "./client.ts"
import { closedPort } from "./faults.ts"
import { cleanUp, eventually, type Service, start } from "./process.ts"
import { closeReceivers, receiver } from "./receivers.ts"

const endsWithinMs = 120_000
const password = "a-password-of-a-message"

let here: Service
let there: Service

const startOne = async (): Promise<Service> => {
  const port = String(await closedPort())
  return start({
    env: {
      PORT: port,
      BASE_URL: `http://127.0.0.1:${port}`,
      OUTBOUND_ALLOW: "127.0.0.0/8",
      RETRY_SCHEDULE: "0s,200ms,200ms,200ms"
    }
  })
}

beforeAll(async () => {
  here = await startOne()
  there = await startOne()
})
afterAll(() => {
  closeReceivers()
  cleanUp()
})

const locationOf = (answer: Answer): string => answer.headers.get("location") ?? ""
/** Requests an absolute URI as its owner. */
const get = (uri: string) => send("", uri, { headers: asAdmin })

const openThere = async (name: string, settings = "") => {
  const document = `<mailbox><name>${name}</name>${settings}</mailbox>`
  const made = expectStatus(await postXml(there.url, "/mailboxes", document, asAdmin), 201)
  const { password, path } = mailboxOf(made)
  return { password, path: new URL(path).pathname, uri: locationOf(made) }
}

/** Sends from the first service; returns the attributes of its only recipient at the end. */
const sendFromHere = async (to: string, item: string) => {
  const document = notification("news").replace("<item>", `<to>${to}</to><item>`)
    .replace("</item>", `${item}</item>`)
  const queued = await postXml(here.url, "/outgoing/admin", document, asAdmin)
  const uri = locationOf(expectStatus(queued, 202))
  return eventually(endsWithinMs, "it ends", async () => {
    const document = parseXml(expectStatus(await get(uri), 200).text)
    return document.attributes["status"] === "waiting"
      ? undefined
      : childOf(document, "recipient").attributes
  })
}

it("relays to the other, which stores it and returns its URI", async () => {
  const mailbox = await openThere("alice")
  const recipient = await sendFromHere(mailbox.uri, "<priority>1</priority>")
  expect(recipient).toMatchObject({ status: "success", attempts: "1", code: "202" })
  const stored = parseXml(expectStatus(await get(recipient["location"] ?? ""), 200).text)
  const item = childOf(stored, "item")
  expect(childOf(item, "description").text).toBe("news")
  expect(childOf(item, "priority").text).toBe("1")
  expect(stored.children.filter(({ name }) => name === "to")).toEqual([])
})

it("discovers the mailbox of a page", async () => {
  const mailbox = await openThere("discovered")
  const page = await receiver(({ method }, response) => {
    if (method === "POST") return void response.writeHead(405, { allow: "GET" }).end()
    response.writeHead(200, { "content-type": "text/html" })
      .end(`<!doctype html><title>Bob</title><link rel="mailbox" href="${mailbox.uri}">`)
  })
  const recipient = await sendFromHere(`${page}/~bob`, "")
  expect(recipient).toMatchObject({ status: "success", attempts: "1", code: "202" })
  expect(recipient["location"]).toContain(`${mailbox.uri}/notifications/`)
  const listed = await listMailbox(there.url, { ...mailbox, shared: "" })
  expect(listed.map(({ description }) => description)).toEqual(["news"])
})

it("reports a deleted mailbox", async () => {
  const mailbox = await openThere("gone")
  expectStatus(await send("", mailbox.uri, { method: "DELETE", headers: asAdmin }), 204)
  expect(await sendFromHere(mailbox.uri, "")).toMatchObject({
    status: "failed",
    attempts: "1",
    code: "410"
  })
})

it("fetches a message with a password from the other, and sends it a receipt", async () => {
  const settings = "<fetch>eager</fetch><receipts>received</receipts>"
  const mailbox = await openThere("eager", settings)
  const published = await send(here.url, "/content", {
    method: "POST",
    body: "the keys are under the mat",
    headers: { "content-type": "text/plain", "message-password": password }
  })
  const content = locationOf(expectStatus(published, 202))
  const edit = /<([^>]*)>; rel="?edit"?/.exec(published.headers.get("link") ?? "")?.[1] ?? ""
  const document = notification("locked").replace(/<url>.*<\/url>/, `<url>${content}</url>`)
    .replace("</item>", `<password>${password}</password></item>`)
  const deposited = expectStatus(
    // An anonymous deposit would cause no request to this machine.
    await postXml(there.url, mailbox.path, document, asAdmin),
    202
  )
  const cached = await eventually(endsWithinMs, "it is fetched", async () => {
    const document = parseXml(expectStatus(await get(locationOf(deposited)), 200).text)
    return document.children.find(({ name }) => name === "cached")
  })
  const copy = expectStatus(await get(cached.attributes["href"] ?? ""), 200)
  expect(copy.text).toBe("the keys are under the mat")
  const receipts = new URL(`${edit}/receipts`, here.url).href
  await eventually(endsWithinMs, "it is reported", async () => {
    const { text } = expectStatus(await get(receipts), 200)
    return text.includes(`mailbox="${mailbox.uri}"`) && text.includes(`status="received"`)
      ? true
      : undefined
  })
})

it("reads an answer that the other stores", async () => {
  const published = await send(here.url, "/content", {
    method: "POST",
    body: "Sir Robin",
    headers: { "content-type": "text/plain" }
  })
  const begun = await postXml(there.url, "/sessions", `<answer continue="true">go</answer>`)
  const session = new URL(locationOf(expectStatus(begun, 201)), there.url).pathname
  const name = `<answer href="${locationOf(expectStatus(published, 202))}"/>`
  expectStatus(await putXml(there.url, `${session}/name`, name), 422)
  expectStatus(await putXml(there.url, `${session}/name`, name, asAdmin), 201)
  expectStatus(await putXml(there.url, `${session}/quest`, "<answer>the Grail</answer>"), 201)
  expectStatus(await putXml(there.url, `${session}/hard_question`, "<answer>Assur</answer>"), 201)
})

it("delivers once when the other runs again", async () => {
  const mailbox = await openThere("back")
  expect((await there.stop()).code).toBe(0)
  const document = notification("late").replace("<item>", `<to>${mailbox.uri}</to><item>`)
  const queued = await postXml(here.url, "/outgoing/admin", document, asAdmin)
  const uri = locationOf(expectStatus(queued, 202))
  const failed = await eventually(endsWithinMs, "it has failed", async () => {
    const document = parseXml(expectStatus(await get(uri), 200).text)
    return document.attributes["status"] === "failed" ? childOf(document, "recipient") : undefined
  })
  expect(failed.attributes).toMatchObject({ attempts: "4", problem: "connection refused" })
  const { port } = new URL(mailbox.uri)
  there = await start({
    dataDir: there.dataDir,
    env: { PORT: port, BASE_URL: `http://127.0.0.1:${port}` }
  })
  const retry = () => send("", `${uri}/retry`, { method: "POST", headers: asAdmin })
  expectStatus(await retry(), 202)
  expectStatus(await retry(), 409)
  await eventually(
    endsWithinMs,
    "it is there",
    async () => parseXml((await get(uri)).text).attributes["status"] === "sent" ? true : undefined
  )
  const listed = await listMailbox(there.url, { ...mailbox, shared: "" })
  expect(listed.map(({ description }) => description)).toEqual(["late"])
})

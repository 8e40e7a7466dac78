/** Outgoing mailboxes and cabinets. */
import { expect } from "vitest"
import { childrenOf } from "../../../http/formats/xml/index.ts"
import { admin } from "../operation-requests.ts"
import { eventually } from "../receiver.ts"
import { firstEvent, item, located, type OperationCalls } from "./calls.ts"

/** Each retry of a notification needs that it has failed again. */
const retried = async ({ asks, send }: OperationCalls, path: string): Promise<void> => {
  const again = async () => {
    await eventually("it has failed again", async () => {
      const { xml } = await send("GET", path, { basic: admin })
      return xml.attributes["status"] === "failed" ? true : undefined
    })
    return `${path}/retry`
  }
  const { xml } = await send("GET", path, { basic: admin })
  const [recipient] = childrenOf(xml, "recipient")
  const to = recipient?.attributes["href"] ?? ""
  await asks("POST /outgoing/{account}/{notification}/retry", {
    path: again,
    root: "retry",
    json: () => ({ to: [to] }),
    form: () => ({ to })
  })
}

/** The pauses of an outgoing mailbox; in the end nothing is paused. */
const askPauses = async ({ asks }: OperationCalls): Promise<void> => {
  const path = "/outgoing/admin/pauses"
  const origin = "https://receiver.example"
  await asks("GET /outgoing/{account}/pauses", { path })
  await asks("PUT /outgoing/{account}/pauses", {
    path,
    root: "pauses",
    json: () => ({ status: "active", pause: [{ origin }] })
  })
  await asks("POST /outgoing/{account}/pauses", {
    path,
    form: () => ({ method: "put", status: "active", origin: "" })
  })
}

/** Outgoing notifications and their stream. */
export const askOutgoing = async (calls: OperationCalls): Promise<void> => {
  const { asks, receiver, send, service } = calls
  await asks("GET /outgoing", { path: "/outgoing" })
  const to = `${receiver.origin}/box`
  await asks("POST /outgoing", {
    path: "/outgoing",
    form: (round) => ({ to, ...item(round) }),
    besides: ["unfit", "weak"]
  })
  const path = "/outgoing/admin"
  const sent = await asks("POST /outgoing/{account}", {
    path,
    root: "notification",
    json: (round) => ({ from: "true", to: [to], item: item(round) }),
    form: (round) => ({ to, ...item(round), content: "" })
  })
  await asks("GET /outgoing/{account}", { path: `${path}?limit=1000` })
  const one = located(service, sent)
  const key = "/outgoing/{account}/{notification}"
  await eventually("it is sent", async () => {
    const { xml } = await send("GET", one, { basic: admin })
    return xml.attributes["status"] === "sent" ? true : undefined
  })
  await asks(`GET ${key}`, { path: one })
  expect((await firstEvent(service, one))?.event).toBe("status")
  const since = "2020-01-01T00:00:00Z"
  await askPauses(calls)
  await asks("POST /outgoing/{account}/retry", {
    path: `${path}/retry?since=${since}`,
    root: "retry",
    json: () => ({ to: [`${receiver.origin}/nobody`] }),
    form: () => ({ since })
  })
  const failing =
    `<notification><to>${receiver.origin}/refused</to><item><description>d</description>` +
    "<url>http://example.org/</url></item></notification>"
  const failed = located(service, [await send("POST", path, { basic: admin, body: failing })])
  await eventually("it has failed", async () => {
    const { xml } = await send("GET", failed, { basic: admin })
    return xml.attributes["status"] === "failed" ? true : undefined
  })
  await asks(`GET ${key}/attempts`, { path: `${failed}/attempts` })
  await retried(calls, failed)
  const sentAgain = async (): Promise<string> =>
    located(service, [await send("POST", path, { basic: admin, body: failing })])
  await asks(`POST ${key}/replacement`, {
    path: async () => `${await sentAgain()}/replacement`,
    root: "notification",
    json: (round) => ({ from: "true", item: item(round) }),
    form: (round) => ({ ...item(round), content: "" })
  })
  await asks(`POST ${key}/withdrawal`, {
    path: async () => `${await sentAgain()}/withdrawal`,
    form: () => ({}),
    besides: ["unfit"]
  })
  await asks(`POST ${key}`, {
    path: sentAgain,
    form: () => ({ method: "delete" })
  })
  await asks(`DELETE ${key}`, { path: one })
}

/** Cabinets. */
export const askCabinets = async ({ asks, send, service }: OperationCalls): Promise<void> => {
  const box = await send("POST", "/mailboxes", { basic: admin })
  const mailbox = [{ href: located(service, [box]) }]
  await send("POST", located(service, [box]), {
    basic: admin,
    type: "application/json",
    body: JSON.stringify({ item: item(1) })
  })
  const contents = {
    root: "cabinet",
    json: () => ({ title: "All", mailbox, query: { contains: "no" } }),
    form: () => ({ title: "All", mailbox: mailbox[0]?.href ?? "" })
  }
  const made = await asks("POST /cabinets", { path: "/cabinets", ...contents, besides: ["weak"] })
  const path = located(service, made)
  await asks("GET /cabinets", { path: "/cabinets?limit=1000" })
  await asks("GET /cabinets/{cabinet}", { path: `${path}?limit=10` })
  await asks("PUT /cabinets/{cabinet}", { path, ...contents })
  await asks("POST /cabinets/{cabinet}", { path, ...contents })
  await asks("DELETE /cabinets/{cabinet}", { path })
}

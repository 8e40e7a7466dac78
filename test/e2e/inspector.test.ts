/** INSPECTOR=on: the program records messages and commits; without it, nothing. */
import { afterAll, expect, it } from "vitest"
import { asAdmin, childOf, expectStatus, notification, openMailbox, parseXml, pathOf, postXml,
  send } from "./client.ts"
import { cleanUp, start } from "./process.ts"

afterAll(() => cleanUp())

const read = async (base: string, path: string) =>
  parseXml(expectStatus(await send(base, path, { headers: asAdmin }), 200).text)

const mailbox = "/cluster/actors/mailbox/box"

it("records messages and commits, of which the pages show no text", async () => {
  const service = await start({ env: { INSPECTOR: "on" } })
  const base = service.url
  await openMailbox(base, "box")
  const body = notification("words-of-a-user")
  expectStatus(await postXml(base, "/mailboxes/box", body, asAdmin), 202)
  const messages = await read(base, "/cluster/messages?kind=mailbox")
  expect(messages.attributes).toMatchObject({ recording: "on" })
  const deposit = messages.children.find(({ attributes }) => attributes["name"] === "Deposit")
  expect(deposit?.attributes).toMatchObject({ id: "box", outcome: "replied" })
  const commits = childOf(await read(base, mailbox), "commits")
  const [last] = commits.children
  expect(last?.attributes).toMatchObject({ appended: "1", head: "1" })
  expect(commits.children.at(-1)?.attributes).toMatchObject({ state: "written", head: "0" })
  const answer = await send(base, pathOf(last?.attributes["href"] ?? null), { headers: asAdmin })
  expect(childOf(parseXml(answer.text), "past").attributes).toMatchObject({ head: "1" })
  expect(answer.text).not.toContain("words-of-a-user")
  await service.stop()
})

it("records nothing by default", async () => {
  const service = await start()
  const messages = await read(service.url, "/cluster/messages")
  expect([messages.attributes["recording"], messages.children]).toEqual(["off", []])
  await service.stop()
})

/** The service is killed while it deletes what a removed account owned: it continues. */
import { afterAll, expect, it } from "vitest"
import { asAdmin, basic, expectStatus, postXml, send } from "./client.ts"
import { cleanUp, eventually, start } from "./process.ts"

afterAll(cleanUp)

it("is complete after a crash in the middle, and the account stays locked out", async () => {
  const names = Array.from({ length: 400 }, (_, n) => `hoard-${n}`)
  let service = await start()
  const account = await postXml(
    service.url,
    "/accounts",
    "<account><name>hoarder</name></account>",
    asAdmin
  )
  expectStatus(account, 201)
  const token = /<token[^>]*>([^<]+)</.exec(account.text)?.[1] ?? ""
  const hoarder = { authorization: basic("hoarder", token) }
  for (const name of names) {
    expectStatus(
      await postXml(service.url, "/mailboxes", `<mailbox><name>${name}</name></mailbox>`, hoarder),
      201
    )
  }
  const statuses = () =>
    Promise.all(
      names.map(async (name) =>
        (await send(service.url, `/mailboxes/${name}`, { headers: asAdmin })).status
      )
    )
  const removed = await send(service.url, "/accounts/hoarder?owned=delete", {
    method: "DELETE",
    headers: asAdmin
  })
  expectStatus(removed, 202)
  await service.kill()
  service = await start({ dataDir: service.dataDir })
  const locked = await send(service.url, "/mailboxes", { headers: hoarder })
  expect(locked.status).toBe(401)
  await eventually(
    60_000,
    "every mailbox is gone",
    async () => (await statuses()).every((status) => status === 410) ? true : undefined
  )
}, 240_000)

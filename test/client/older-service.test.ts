/** A client understands what a service of an earlier version leaves out. */
import { expect, it } from "vitest"
import { connect } from "../../client/index.ts"

const href = "https://post.test/mailboxes/alice/registrations/x1"

const entry = { href, status: "active", form: "native", callback: "https://a.test/", attempts: "2" }

const connectTo = (answer: object) =>
  connect({
    url: "https://post.test",
    attempts: 1,
    fetch: () =>
      Promise.resolve(
        new Response(JSON.stringify(answer), { headers: { "content-type": "application/json" } })
      )
  })

it("lists registrations without their cursors and last attempts", async () => {
  const client = connectTo({ registration: [entry, { ...entry, cursor: "7", code: "503" }] })
  expect(await client.mailbox("/mailboxes/alice").registrations()).toMatchObject([
    { href, attempts: 2, cursor: undefined, last: undefined, code: undefined },
    { href, attempts: 2, cursor: 7, code: 503 }
  ])
})

it("does not take the state of one without a cursor", async () => {
  const client = connectTo(entry)
  const registration = client.mailbox("/mailboxes/alice").registration(href)
  await expect(registration.state()).rejects.toThrow("cursor")
})

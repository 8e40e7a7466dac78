/** Subjects of defined actors: what `runtime/http/README.md` says of them, beside HTTP. */
import { connect, headers, type NatsConnection } from "@nats-io/transport-node"
import { createHmac } from "node:crypto"
import { afterAll, beforeAll, expect, it } from "vitest"
import { subjectOf } from "../../../runtime/index.ts"
import { type ActorNode, startNode } from "../../../runtime/main.ts"
import { nats } from "../../../runtime/nats/main.ts"
import { room } from "../http/actors.ts"
import { startServer } from "./servers.ts"

let server: Awaited<ReturnType<typeof startServer>>
let node: ActorNode
let client: NatsConnection

const secret = "of the cluster: é"

beforeAll(async () => {
  server = await startServer()
  node = await startNode({ actors: [room], store: nats(server.url, { node: "one", secret }) })
  client = await connect({ servers: server.url })
})

afterAll(async () => {
  await client.close()
  await node.stop()
  await server.close()
})

const subject = subjectOf(room("lobby"))

/** The answer to a message, signed with this secret as docs/subjects.md says; or not signed. */
const asked = async (message: object, key?: string): Promise<unknown> => {
  const body = JSON.stringify(message)
  const fields = headers()
  if (key !== undefined) {
    const time = Date.now()
    const code = createHmac("sha256", key).update(`ask\n${subject}\n\n${time}\n\n\n\n\n${body}`)
      .digest().subarray(0, 16).toString("base64url")
    fields.set("Restante-Auth", `${time} ${code}`)
  }
  const answer = await client.request(subject, body, { timeout: 10_000, headers: fields })
  return answer.json()
}

it("take every message that the secret signs but the timer's, and no others", async () => {
  // At first the last owner of the shard may have decided an older message.
  await expect.poll(() => asked({ _tag: "Post", text: "abc" }, secret))
    .toEqual({ _tag: "Reply", reply: 3 })
  expect(await asked({ _tag: "Sent" }, secret))
    .toEqual({ _tag: "Reply", reply: "only an effect sends this" })
  expect(await asked({ _tag: "Due" }, secret))
    .toMatchObject({ _tag: "Failure", failure: { _tag: "UnknownMessage" } })
  for (const key of [undefined, "of another cluster", ""]) {
    expect(await asked({ _tag: "Post", text: "abc" }, key))
      .toMatchObject({ _tag: "Failure", failure: { _tag: "EnvelopeRefused" } })
  }
})

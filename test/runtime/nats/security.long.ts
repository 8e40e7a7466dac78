/**
 * How a node proves to NATS who it is, and the servers to it, through the built binary: each way
 * that there are settings for, the right and the wrong.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { selfSigned } from "../../actors/outbound/certificates.ts"
import { expectStatus, listMailbox, notification, openMailbox, postXml,
  send } from "../../e2e/client.ts"
import { cleanUp, eventually, launch, Running, start, temporaryFolder } from "../../e2e/process.ts"
import { authority, key, ofLocalhost, ofOther } from "./certificates.ts"
import { decentralised, userKey } from "./credentials.ts"
import { freePorts, serverBinary } from "./servers.ts"

const healthyWithinMs = 120_000

/** Exit codes of the binary. */
const unavailable = 75

const configuration = 78

type Environment = Readonly<Record<string, string>>

const files = temporaryFolder()

const file = (name: string, text: string): string => {
  const path = join(files, name)
  writeFileSync(path, text)
  return path
}

/** A server with these lines in its configuration; its host and port. */
const serverWith = async (lines: string): Promise<string> => {
  const [port = 0, monitor = 0] = await freePorts(2)
  const folder = temporaryFolder()
  const config = join(folder, "nats.conf")
  writeFileSync(
    config,
    `listen: "localhost:${port}"
http: "127.0.0.1:${monitor}"
jetstream { store_dir: "${folder}" }
${lines}
`
  )
  const server = new Running(serverBinary(), ["-c", config], {})
  await eventually(healthyWithinMs, "the server is healthy", () => {
    if (server.isOver) throw new Error(server.output)
    return fetch(`http://127.0.0.1:${monitor}/healthz`)
      .then((response) => response.ok ? true : undefined, () => undefined)
  })
  return `localhost:${port}`
}

/** Has a node start, and stop in good order. */
const isLetIn = async (env: Environment): Promise<void> => {
  const node = await start({ env })
  expect((await fetch(`${node.url}/readyz`)).status).toBe(200)
  expect(await node.stop()).toEqual({ code: 0, signal: null })
  expectSilent(node.output, env)
}

const expectSilent = (output: string, env: Environment): void => {
  const secrets = ["NATS_PASSWORD", "NATS_TOKEN", "NATS_NKEY_SEED"]
    .flatMap((name) => env[name] ?? [])
  for (const secret of secrets) expect(output).not.toContain(secret)
  expect(output).not.toMatch(/BEGIN|SU[A-Z2-7]{50}|eyJ/)
}

/** Has a node end at its start; what it said. */
const isRefused = async (env: Environment, says: RegExp, code = unavailable): Promise<void> => {
  const node = launch({ env: { ...env, LOG_LEVEL: "trace" } })
  const ended = await node.end()
  expect(node.output).toMatch(says)
  expect(ended).toEqual({ code, signal: null })
  expectSilent(node.output, env)
}

afterAll(cleanUp)

describe("by user and password", () => {
  const env = { NATS_USER: "ann", NATS_PASSWORD: "a-password-of-ann" }
  let place: string
  beforeAll(async () => {
    place = await serverWith(
      `authorization { user: ann, password: "${env.NATS_PASSWORD}" }`
    )
  })

  it("a node is let in", () => isLetIn({ ...env, NATS_URL: place }))
  it.each([
    ["a wrong password", { ...env, NATS_PASSWORD: "a-wrong-password" }],
    ["another user", { ...env, NATS_USER: "bob" }],
    ["nothing", {}]
  ])(
    "not with %s",
    (_, wrong) =>
      isRefused({ ...wrong, NATS_URL: place }, /NATS at .* cannot be used: .*Authorization/i)
  )
  it(
    "admits a user with only the permissions of docs/nats.md, and a mailbox works",
    async () => {
      const page = readFileSync(new URL("../../../docs/nats.md", import.meta.url), "utf8")
      const listed = /must be allowed to publish and subscribe to (.*), and/.exec(page)?.[1] ?? ""
      const subjects = [...listed.matchAll(/`([^`]+)`/g)].map(([, subject]) => `"${subject}"`).join(
        ", "
      )
      expect(subjects).toContain("restante.>")
      const rights = `publish: [${subjects}], subscribe: [${subjects}]`
      const user = `user: ann, password: "${env.NATS_PASSWORD}", permissions: { ${rights} }`
      const narrow = await serverWith(`authorization { users: [{ ${user} }] }`)
      const node = await start({ env: { ...env, NATS_URL: narrow } })
      const mailbox = await openMailbox(node.url, "narrow")
      expectStatus(await postXml(node.url, mailbox.path, notification("one")), 202)
      const large = "x".repeat(300_000)
      expectStatus(await send(node.url, "/content", { method: "POST", body: large }), 202)
      expect(await listMailbox(node.url, mailbox)).toHaveLength(1)
      expect(await node.stop()).toEqual({ code: 0, signal: null })
      expect(node.output).not.toMatch(/permission/i)
    }
  )
  it("refuses a user that no other node could ask, and names the right that it lacks", async () => {
    const subjects = "[\"$JS.API.>\", \"$JS.ACK.>\", \"$KV.>\", \"_INBOX.>\"]"
    const rights = `publish: ${subjects}, subscribe: ${subjects}`
    const user = `user: ann, password: "${env.NATS_PASSWORD}", permissions: { ${rights} }`
    const mute = await serverWith(`authorization { users: [{ ${user} }] }`)
    await isRefused({ ...env, NATS_URL: mute }, /cannot reach each other over NATS: .*"restante\./)
  })
  it("an address with a password is no setting", () =>
    isRefused({ NATS_URL: `nats://ann:a-secret@${place}` }, /without credentials/, configuration))
})

describe("by token", () => {
  const env = { NATS_TOKEN: "a-token-of-nodes" }
  let place: string
  beforeAll(async () => {
    place = await serverWith(`authorization { token: "${env.NATS_TOKEN}" }`)
  })

  it("a node is let in", () => isLetIn({ ...env, NATS_URL: place }))
  it(
    "not with another",
    () => isRefused({ NATS_TOKEN: "another-token", NATS_URL: place }, /Authorization/i)
  )
})

describe("by nkey", () => {
  const user = userKey()
  let place: string
  beforeAll(async () => {
    place = await serverWith(
      `accounts { A: { jetstream: enabled, users: [{ nkey: ${user.publicKey} }] } }`
    )
  })

  it("a node is let in", () => isLetIn({ NATS_NKEY_SEED: user.seed, NATS_URL: place }))
  it(
    "not with another",
    () => isRefused({ NATS_NKEY_SEED: userKey().seed, NATS_URL: place }, /Authorization/i)
  )
  it("what is no seed is reported", () =>
    isRefused({ NATS_NKEY_SEED: "SUNOSEED", NATS_URL: place }, /cannot be used: NATS: nkeys/))
})

describe("by a file of credentials", () => {
  const operator = decentralised()
  let place: string
  beforeAll(async () => {
    place = await serverWith(operator.config)
  })

  it(
    "a node is let in",
    () => isLetIn({ NATS_CREDS: file("node.creds", operator.creds()), NATS_URL: place })
  )
  it("not with those of an account that the server does not know", () =>
    isRefused(
      { NATS_CREDS: file("strange.creds", operator.strangers()), NATS_URL: place },
      /Authorization/i
    ))
  it("a file that is not there is named", () =>
    isRefused({ NATS_CREDS: join(files, "none.creds"), NATS_URL: place }, /none\.creds/))
})

describe("by TLS with a private authority", () => {
  const node = {
    NATS_CA: file("ca.crt", authority),
    NATS_CERT: file("tls.crt", ofLocalhost),
    NATS_KEY: file("tls.key", key)
  }
  const tls = (certificate: string): string =>
    `tls { cert_file: "${certificate}", key_file: "${node.NATS_KEY}", ` +
    `ca_file: "${node.NATS_CA}", verify: true }`
  let url: string
  beforeAll(async () => {
    url = `tls://${await serverWith(tls(node.NATS_CERT))}`
  })

  it("a node with a certificate is let in", () => isLetIn({ ...node, NATS_URL: url }))
  it("not one whose certificate is of nobody's signing", () =>
    isRefused(
      { ...node, NATS_CERT: file("self.crt", selfSigned), NATS_URL: url },
      /cannot be used: NATS: /
    ))
  it(
    "not one without a certificate",
    () => isRefused({ NATS_CA: node.NATS_CA, NATS_URL: url }, /cannot be used: NATS: /)
  )
  it("servers of an authority that the node does not know are not talked to", () =>
    isRefused(
      { NATS_CERT: node.NATS_CERT, NATS_KEY: node.NATS_KEY, NATS_URL: url },
      /certificate/i
    ))
  it("nor is one whose certificate is another host's", async () => {
    const elsewhere = await serverWith(tls(file("other.crt", ofOther)))
    await isRefused({ ...node, NATS_URL: `tls://${elsewhere}` }, /cannot be used: .*altnames/i)
  })
  it("a server that offers no TLS is not talked to", async () => {
    const plain = await serverWith("")
    await isRefused({ ...node, NATS_URL: `tls://${plain}` }, /tls/i)
  })
  it("nor is it without files of certificates, or where another address requires TLS", async () => {
    const plain = await serverWith("")
    await isRefused({ NATS_URL: `tls://${plain}` }, /does not support 'tls'/)
    await isRefused({ NATS_URL: `${plain},tls://localhost:1` }, /does not support 'tls'|refused/)
  })
})

it("refuses a server without atomic batches, and names its version", async () => {
  const info = {
    server_id: "NOLD",
    version: "2.9.10",
    proto: 1,
    headers: true,
    jetstream: true,
    max_payload: 1_048_576
  }
  const old = createServer((socket) => {
    socket.on("error", () => socket.destroy())
    socket.on("data", (bytes) => {
      if (bytes.includes("PING")) socket.write("PONG\r\n")
    })
    socket.write(`INFO ${JSON.stringify(info)}\r\n`)
  })
  const [port = 0] = await freePorts(1)
  await new Promise<void>((resolve) => old.listen(port, "127.0.0.1", resolve))
  try {
    await isRefused(
      { NATS_URL: `127.0.0.1:${port}` },
      /NATS at nats:\S+:\d+ is version 2\.9\.10, which is too old: install NATS 2\.12 or newer/
    )
  } finally {
    old.close()
  }
})

/** An issuer of tokens: its keys made here, served on loopback, and withheld when asked. */
import { Effect, Exit, Result, Scope } from "effect"
import { exportJWK, exportSPKI, generateKeyPair, type JWTPayload, SignJWT } from "jose"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { issuerOf } from "../../deploy/node/issuer.ts"
import { loadSettings } from "../../deploy/settings/settings.ts"
import type { Service } from "../../http/pipeline/service.ts"

export const issuerName = "https://issuer.example/realms/post"
export const audience = "https://post.example"

type Pair = Awaited<ReturnType<typeof generateKeyPair>>

export interface Key {
  readonly kid: string
  readonly algorithm: string
  readonly pair: Pair
}

export const makeKey = async (kid: string, algorithm = "ES256"): Promise<Key> => ({
  kid,
  algorithm,
  pair: await generateKeyPair(algorithm, { extractable: true })
})

/** The public half as it stands in a JWK Set. */
export const jwkOf = async ({ algorithm, kid, pair }: Key) => ({
  ...await exportJWK(pair.publicKey),
  kid,
  alg: algorithm,
  use: "sig"
})

export const pemOf = ({ pair }: Key): Promise<string> => exportSPKI(pair.publicKey)

/** Serves keys until it is closed. */
export interface KeyServer {
  readonly url: string
  /** By its metadata the keys are at `url`. */
  readonly issuer: string
  /** What its metadata say from here on beside that. */
  readonly tell: (other: object) => void
  /** What is answered from here on. */
  readonly serve: (status: number, keys: ReadonlyArray<Key>) => Promise<void>
  /** The same, word by word. */
  readonly answer: (status: number, body: string) => void
  /** How often it was asked. */
  readonly asked: () => number
  readonly close: () => Promise<void>
}

export const startKeyServer = async (): Promise<KeyServer> => {
  let current = { status: 200, body: "{}" }
  let asked = 0
  let metadata: object = {}
  const server = createServer(({ url }, response) => {
    const isMetadata = url === "/realms/post/.well-known/openid-configuration"
    if (!isMetadata) asked += 1
    const { body, status } = isMetadata
      ? { status: 200, body: JSON.stringify(metadata) }
      : current
    response.writeHead(status, { "content-type": "application/json" }).end(body)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo // a TCP server's address is an object
  const url = `http://127.0.0.1:${port}/jwks`
  const issuer = `http://127.0.0.1:${port}/realms/post`
  metadata = { issuer, jwks_uri: url }
  return {
    url,
    issuer,
    tell: (other) => {
      metadata = { issuer, jwks_uri: url, ...other }
    },
    serve: async (status, keys) => {
      current = { status, body: JSON.stringify({ keys: await Promise.all(keys.map(jwkOf)) }) }
    },
    answer: (status, body) => {
      current = { status, body }
    },
    asked: () => asked,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      })
  }
}

/** The clock of the issuer and of whoever checks its tokens. */
export const clock = { atMs: Date.now() }

/** So many seconds from now on, as claims hold times. */
export const seconds = (offset: number): number => Math.floor(clock.atMs / 1000) + offset

/** A token as the issuer makes it, with other claims put in place of its own. */
export const tokenOf = (key: Key, claims: object = {}, header: object = {}): Promise<string> => {
  const payload: JWTPayload = {
    iss: issuerName,
    aud: audience,
    sub: "alice",
    exp: seconds(300),
    iat: seconds(0),
    ...claims
  }
  return new SignJWT(payload)
    .setProtectedHeader({ alg: key.algorithm, kid: key.kid, typ: "JWT", ...header })
    .sign(key.pair.privateKey)
}

/** What each node accepts tokens by, from settings as an operator writes them. */
export const issuers = (settings: Readonly<Record<string, string>>) => {
  const scope = Scope.makeUnsafe()
  return {
    make: (): Promise<Service["issuer"]> => {
      const loaded = loadSettings({
        AUTH_ISSUER: issuerName,
        AUTH_AUDIENCE: `https://other.example,${audience}`,
        ...settings
      })
      if (Result.isFailure(loaded)) throw new Error(loaded.failure.message)
      const made = issuerOf(loaded.success.settings, () => clock.atMs)
      return Effect.runPromise(Scope.provide(made, scope))
    },
    close: () => Effect.runPromise(Scope.close(scope, Exit.void))
  }
}

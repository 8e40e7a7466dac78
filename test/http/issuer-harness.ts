/** An issuer of tokens for tests, with a server of its keys on loopback. */
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

/** The public key as a member of a JWK Set. */
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
  /** An issuer whose metadata name `url` as the address of the keys. */
  readonly issuer: string
  /** Sets further members of the metadata. */
  readonly setMetadata: (other: object) => void
  /** Sets the answer of `url`: a status and a key set. */
  readonly serve: (status: number, keys: ReadonlyArray<Key>) => Promise<void>
  /** Sets the answer of `url`: a status and a body. */
  readonly answer: (status: number, body: string) => void
  /** The number of requests for keys. */
  readonly requestCount: () => number
  readonly close: () => Promise<void>
}

export const startKeyServer = async (): Promise<KeyServer> => {
  let current = { status: 200, body: "{}" }
  let requestCount = 0
  let metadata: object = {}
  const server = createServer(({ url }, response) => {
    const isMetadata = url === "/realms/post/.well-known/openid-configuration"
    if (!isMetadata) requestCount += 1
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
    setMetadata: (other) => {
      metadata = { issuer, jwks_uri: url, ...other }
    },
    serve: async (status, keys) => {
      current = { status, body: JSON.stringify({ keys: await Promise.all(keys.map(jwkOf)) }) }
    },
    answer: (status, body) => {
      current = { status, body }
    },
    requestCount: () => requestCount,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      })
  }
}

/** The clock of the issuer and of the services that check its tokens. */
export const clock = { atMs: Date.now() }

/** The time `offset` seconds from now, in seconds since the epoch, as in claims. */
export const seconds = (offset: number): number => Math.floor(clock.atMs / 1000) + offset

/** A token of the issuer; `claims` and `header` replace the default ones. */
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

/** Makes the issuer of each node from an operator's settings. */
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
      const created = issuerOf(loaded.success.settings, {
        nowMs: () => clock.atMs,
        monotonicMs: () => clock.atMs
      })
      return Effect.runPromise(Scope.provide(created, scope))
    },
    close: () => Effect.runPromise(Scope.close(scope, Exit.void))
  }
}

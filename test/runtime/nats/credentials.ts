/** Keys and decentralised credentials (JWT) for the tests, made as NATS's own tools make them. */
import { nkeys } from "@nats-io/transport-node"

type Pair = ReturnType<typeof nkeys.createUser>

const decoder = new TextDecoder()

/** A key pair of a user, as text. */
export interface UserKey {
  /** `U…`, which the server knows. */
  readonly publicKey: string
  /** `SU…` */
  readonly seed: string
}

const keyOf = (pair: Pair): UserKey => ({
  publicKey: pair.getPublicKey(),
  seed: decoder.decode(pair.getSeed())
})

export const userKey = (): UserKey => keyOf(nkeys.createUser())

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url")

/** A token with claims about a subject, signed by its issuer. */
const token = (issuer: Pair, sub: string, name: string, claims: object): string => {
  const iat = Math.floor(Date.now() / 1000)
  const said = { jti: `${name}-${iat}`, iat, iss: issuer.getPublicKey(), name, sub, nats: claims }
  const text = `${encoded({ typ: "JWT", alg: "ed25519-nkey" })}.${encoded(said)}`
  return `${text}.${Buffer.from(issuer.sign(Buffer.from(text))).toString("base64url")}`
}

const noLimits = { subs: -1, data: -1, payload: -1 }

const accountClaims = (stored: number) => ({
  limits: {
    ...noLimits,
    imports: -1,
    exports: -1,
    wildcards: true,
    conn: -1,
    leaf: -1,
    mem_storage: stored,
    disk_storage: stored,
    streams: stored,
    consumer: stored
  },
  type: "account",
  version: 2
})

/** An operator with one account for restante. */
export interface Decentralised {
  /** Lines of the server's configuration. */
  readonly config: string
  /** Text of a file of credentials, as `NATS_CREDS` names one. */
  readonly creds: (user?: UserKey) => string
  /** The same, of an account that the server does not know. */
  readonly strangers: () => string
}

const credsOf = (account: Pair, user: UserKey): string => {
  const claims = { pub: {}, sub: {}, ...noLimits, type: "user", version: 2 }
  const jwt = token(account, user.publicKey, "node", claims)
  return `-----BEGIN NATS USER JWT-----
${jwt}
------END NATS USER JWT------

-----BEGIN USER NKEY SEED-----
${user.seed}
------END USER NKEY SEED------
`
}

export const decentralised = (): Decentralised => {
  const operator = nkeys.createOperator()
  const system = nkeys.createAccount()
  const account = nkeys.createAccount()
  const systemKey = system.getPublicKey()
  const operatorClaims = { type: "operator", version: 2, system_account: systemKey }
  const tokens = [
    [systemKey, token(operator, systemKey, "SYS", accountClaims(0))],
    [
      account.getPublicKey(),
      token(operator, account.getPublicKey(), "RESTANTE", accountClaims(-1))
    ]
  ]
  const preload = tokens.map(([name, jwt]) => `${name}: "${jwt}"`).join("\n")
  return {
    config: `operator: "${token(operator, operator.getPublicKey(), "op", operatorClaims)}"
system_account: ${systemKey}
resolver: MEMORY
resolver_preload { ${preload} }`,
    creds: (user = userKey()) => credsOf(account, user),
    strangers: () => credsOf(nkeys.createAccount(), userKey())
  }
}

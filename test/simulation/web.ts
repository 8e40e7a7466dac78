/**
 * The HTTP service of a node, below the native server: the real routes, handlers, idempotency and
 * rendering. A request arrives with its whole body.
 */
import { Cause, Effect } from "effect"
import { createHash } from "node:crypto"
import { NodePauses, type UsageLedger } from "../../actors/index.ts"
import { handleCall } from "../../http/app.ts"
import { CredentialCache, identityOf, type IdSource,
  randomIds } from "../../http/auth/credentials/index.ts"
import type { Issuer } from "../../http/auth/issuer/index.ts"
import { Documentation } from "../../http/documentation/index.ts"
import { DocumentParser } from "../../http/formats/xml/document-parser.ts"
import { NodeHistory } from "../../http/history/node-history.ts"
import { defaultDocumentLimits } from "../../http/limits.ts"
import { type Call, compileRoutes, type HandlerAnswer, type HandlerFailure, HttpMetrics,
  renderFailure, renderView, type ResourceHandler,
  type Service } from "../../http/pipeline/index.ts"
import { RowCaches } from "../../http/query-engine/index.ts"
import { ActorListings, BlockList, Clients, DocsSearches, OpenAnswers, RefusalCounter, RemoteReader,
  RowScans, TextSearches } from "../../http/rates/index.ts"
import { routesOf } from "../../http/resource.ts"
import { contentResource } from "../../http/resources/content/index.ts"
import { customerResource } from "../../http/resources/customers/customer-resource.ts"
import { mailboxResource } from "../../http/resources/mailboxes/index.ts"
import { sessionResource } from "../../http/resources/sessions/index.ts"
import { type Exchange, noBody, type ReplyHeaders,
  type RequestBody } from "../../http/wire/index.ts"
import { RequestHeaders } from "../../http/wire/request.ts"
import type { BlobsApi, RecordsApi, SystemApi } from "../../runtime/index.ts"
import { makeTestKeyring } from "../actors/dependencies.ts"

export interface WebRequest {
  readonly method: string
  readonly path: string
  readonly query?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Of a request without a key: draws ids in shards that the nodes own. */
  readonly ids?: IdSource
}

export interface WebAnswer {
  readonly status: number
  readonly headers: ReplyHeaders
  readonly text: string
}

/** The value of a header field, by its name as the service writes it. */
export const fieldOf = ({ headers }: WebAnswer, name: string): string | undefined =>
  headers.find(([one]) => one === name)?.[1]

/** What a node gives to its HTTP service. */
export interface WebParts {
  readonly baseUrl: string
  readonly startId: string
  readonly system: SystemApi
  readonly blobs: BlobsApi
  readonly records: RecordsApi
  readonly usage: UsageLedger
}

const documentParser = new DocumentParser(defaultDocumentLimits)

/** The secret that all nodes share. */
export const serviceKey = "the key of the simulation"

/** Nobody presents a token here, and making an empty cache takes longer than making a node. */
const credentialCache = new CredentialCache()

const clients = new Clients([])

const remoteReader = new RemoteReader({
  forAnyone: () => () => Effect.fail("nothing is outside"),
  forAccounts: () => () => Effect.fail("nothing is outside"),
  clients
})

/** The credentials of an account whose name the token has. */
export const bearerOf = (account: string) => ({ authorization: `Bearer eyJ.${account}.signed` })

/** Believes every token; the accounts are real. */
const issuer = {
  verify: (token: string) =>
    Effect.succeed({ name: token.split(".")[1] ?? "", roles: ["customers"], rights: {} })
} as unknown as Issuer // a class with private members, of which handlers call this method only

const httpMetrics = new HttpMetrics()

const deliveries: Service["deliveries"] = {
  metrics: () => {
    throw new Error("nobody reads the metrics here")
  },
  busiestOrigins: () => []
}

const nowMs = () => Date.now()

/** The service of a node. */
export const serviceOf = (
  { baseUrl, blobs, records, startId, system, usage }: WebParts
): Service => ({
  history: new NodeHistory({ system, httpMetrics, deliveries, nowMs, monotonicMs: nowMs }),
  settings: {
    baseUrl,
    contentBaseUrl: undefined,
    version: "0.0.0-simulation",
    takesReferences: true,
    securityContact: undefined,
    fanOutAllow: [],
    publish: "anyone",
    contentBytesMax: 1_000_000,
    retentionMs: 24 * 60 * 60_000,
    corsOrigin: undefined
  },
  system,
  blobs,
  records,
  usage,
  documentParser,
  documentation: new Documentation(() => Promise.resolve(undefined)),
  rowCaches: new RowCaches(records),
  pauses: new NodePauses(),
  engine: "simulated",
  blocks: new BlockList(records),
  auditRefusals: new RefusalCounter(),
  remoteReader,
  issuer,
  credentialCache,
  clients,
  openAnswers: new OpenAnswers(clients),
  rowScans: new RowScans(clients),
  actorListings: new ActorListings(clients),
  textSearches: new TextSearches(clients),
  docsSearches: new DocsSearches(clients),
  rateLimiter: undefined,
  diskFloor: undefined,
  startId,
  serviceKey,
  applicationServerKey: "",
  // It holds random bytes of the process.
  keyring: makeTestKeyring(),
  httpMetrics,
  deliveries,
  shownSettings: [],
  metricsText: () => "",
  archive: async function*() {},
  ready: Effect.void,
  nowMs
})

const bodyOf = (text: string): RequestBody => {
  const bytes = Buffer.from(text)
  return {
    ...noBody,
    bytes: Effect.succeed(bytes),
    stream: {
      async *[Symbol.asyncIterator]() {
        if (bytes.length > 0) yield bytes
      }
    },
    digest: () => createHash("sha256").update(bytes).digest("base64url")
  }
}

/** No handler of these resources uses the connection, except for answers that wait. */
const exchange = undefined as unknown as Exchange

export class Web {
  readonly service: Service
  private readonly match: ReturnType<typeof compileRoutes<ResourceHandler>>
  private readonly onDefect: (what: string) => void

  constructor(service: Service, onDefect: (what: string) => void) {
    this.service = service
    this.onDefect = onDefect
    this.match = compileRoutes(
      routesOf(this.service, [
        contentResource,
        customerResource,
        mailboxResource(this.service.settings),
        sessionResource
      ])
    )
  }

  /** Handles a request. */
  answer(request: WebRequest, done: (answer: WebAnswer) => void): void {
    const { body = "", headers = {}, ids = randomIds, method, path, query = "" } = request
    const found = this.match(method, path)
    if (found._tag !== "Found") throw new Error(`${method} ${path} is ${found._tag}`)
    const { handler, parameters } = found
    const fields = Object.entries(headers).flat()
    const asked = {
      method,
      path,
      query,
      headers: new RequestHeaders(fields),
      remoteAddress: "192.0.2.1"
    }
    const call: Call = {
      request: asked,
      exchange,
      body: bodyOf(body),
      documentParser,
      parameters,
      identity: identityOf(asked),
      ids,
      key: undefined
    }
    const answered = Effect.matchCauseEffect(handleCall(this.service, handler, call), {
      onSuccess: (answer) => this.rendered(call, answer),
      onFailure: (cause) => Effect.sync(() => this.failed(call, cause))
    })
    Effect.runFork(answered).addObserver((exit) => {
      if (exit._tag === "Success") done(exit.value)
    })
  }

  private rendered(call: Call, answer: HandlerAnswer): Effect.Effect<WebAnswer> {
    switch (answer._tag) {
      case "View":
        return this.rendered(call, renderView(answer, call, this.service.settings.baseUrl))
      case "Plain": {
        const { body = "", headers, status } = answer
        return Effect.succeed({ status, headers, text: Buffer.from(body).toString() })
      }
      case "Stream":
        return Effect.promise(async () => {
          const parts: Array<Uint8Array> = []
          for await (const part of answer.source) parts.push(part)
          const { headers, status } = answer
          return { status, headers, text: Buffer.concat(parts).toString() }
        })
      case "Events":
        throw new Error("nobody asks for events here")
    }
  }

  private failed({ request }: Call, cause: Cause.Cause<HandlerFailure>): WebAnswer {
    const [reason] = cause.reasons
    if (reason?._tag === "Fail") {
      const { headers, status } = renderFailure(
        reason.error,
        request,
        this.service.settings.baseUrl
      )
      return { status, headers, text: reason.error._tag }
    }
    this.onDefect(`${request.method} ${request.path}: ${Cause.pretty(cause)}`)
    return { status: 500, headers: [], text: "" }
  }
}

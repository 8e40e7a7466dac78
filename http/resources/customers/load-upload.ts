/**
 * Receives a file of customers: stores it as a blob and checks each row. It becomes a load only
 * when it is complete and, unless invalid rows may be skipped, valid. Nothing else changes before.
 */
import { Effect, Schedule } from "effect"
import { createHash } from "node:crypto"
import { type BlobCommit, commitBlob } from "../../../runtime/index.ts"
import { randomId } from "../../auth/credentials/index.ts"
import { keyOwnerOf } from "../../auth/index.ts"
import type { DocumentParser, XmlFault } from "../../formats/xml/index.ts"
import { loadSettleMs, loadSettlePauseMs, problemsMax } from "../../limits.ts"
import { type Call, documentError, type HandlerFailure, httpError, otherRequest, readKeyedRequest,
  type Service, streamError } from "../../pipeline/index.ts"
import type { RequestBody } from "../../wire/index.ts"
import { CustomerFileParser, FileBroken, type FileFormat } from "./customer-files.ts"
import { customerOf } from "./customer-input.ts"
import { continueLoad } from "./load-application.ts"
import { type CustomerLoad, loadBlob, loadChanges, loadPath, loadsTable, parseLoad,
  type RowProblem } from "./load.ts"

/** The file is rejected: for what is wrong with it, or for a row. */
class FileRejected extends Error {
  readonly why: XmlFault["_tag"] | RowProblem
  constructor(detail: string, why: XmlFault["_tag"] | RowProblem) {
    super(detail)
    this.why = why
  }
}

/** Counts and checks the rows of a file. */
class RowChecker {
  rows = 0
  skipped = 0
  readonly problems: Array<RowProblem> = []
  private readonly reader: CustomerFileParser

  constructor(documentParser: DocumentParser, format: FileFormat, isLenient: boolean) {
    this.reader = new CustomerFileParser(documentParser, format, (row) => {
      this.rows++
      const customer = row.ok ? customerOf(row.value) : row
      if (customer.ok) return
      const problem = { row: this.rows, detail: customer.fault }
      if (!isLenient) throw new FileRejected(`row ${problem.row}: ${problem.detail}`, problem)
      this.skipped++
      if (this.problems.length < problemsMax) this.problems.push(problem)
    })
  }

  write(bytes: Uint8Array): void {
    this.check(() => this.reader.write(bytes))
  }

  end(): void {
    this.check(() => this.reader.end())
  }

  private check(parse: () => void): void {
    try {
      parse()
    } catch (error) {
      if (!(error instanceof FileBroken)) throw error
      throw new FileRejected(`after row ${this.rows}: ${error.message}`, error.kind)
    }
  }
}

const rejection = ({ message, why }: FileRejected): HandlerFailure =>
  typeof why === "string"
    ? documentError({ _tag: why, detail: message })
    : httpError("unprocessable", message, [], { row: why.row })

interface AcceptedLoad {
  readonly id: string
  readonly load: CustomerLoad
}

/** The load that the store has for an upload. */
interface StoredLoad {
  readonly stored: CustomerLoad
  /** Another request with the same key has stored it. */
  readonly isOther: boolean
}

/** Stores a load under a new id; returns the load that the store has under this id. */
const insertLoad = Effect.fnUntraced(function*(
  { records }: Service,
  id: string,
  load: CustomerLoad
): Effect.fn.Return<CustomerLoad, HandlerFailure> {
  const isNew = [{ table: loadsTable, key: id, value: null }]
  if (yield* records.writeIf(isNew, loadChanges(id, load))) return load
  const stored = yield* records.get(loadsTable, id)
  return stored === undefined ? yield* httpError("overloaded") : parseLoad(stored)
})

const unknownOutcome = (id: string, isKeyed: boolean): HandlerFailure => {
  const path = loadPath(id)
  const advice = isKeyed
    ? `repeat the request with the same Idempotency-Key, or GET ${path} in a minute`
    : `GET ${path} in a minute, and send the file again if that answers 404`
  return httpError(
    "storage-unavailable",
    `it is unknown whether the file was accepted: the store did not confirm ${path}; ${advice}`
  )
}

/**
 * Stores a load. A write that fails may have been kept. The same write is repeated then: it can
 * store the load only once, and finds the one that an earlier write has stored. Fails with 503 if
 * the outcome is still unknown after `loadSettleMs`; a load that was kept continues nevertheless.
 */
const storeLoad = (
  service: Service,
  id: string,
  load: CustomerLoad
): Effect.Effect<CustomerLoad, HandlerFailure> => {
  const inserting = insertLoad(service, id, load)
  const pauses = Schedule.upTo(Schedule.spaced(loadSettlePauseMs), { duration: loadSettleMs })
  const unknown = unknownOutcome(id, load.fingerprint !== undefined)
  const settling = Effect.retry(inserting, pauses).pipe(
    Effect.catch(() => Effect.andThen(continueLoad(service, id), Effect.fail(unknown)))
  )
  return Effect.catchTag(inserting, "StorageUnavailable", () => settling)
}

/** The body of an upload, whose rows are checked while it is stored. */
class CheckedBody {
  rejected: FileRejected | undefined
  private readonly body: RequestBody
  private readonly checker: RowChecker
  private readonly digesting = createHash("sha256")

  constructor(body: RequestBody, checker: RowChecker) {
    this.body = body
    this.checker = checker
  }

  /** The digest of the whole body; call it once, after the end. */
  digest(): string {
    return this.digesting.digest("base64url")
  }

  async *bytes(): AsyncGenerator<Uint8Array> {
    try {
      for await (const chunk of this.body.stream) {
        this.digesting.update(chunk)
        this.checker.write(chunk)
        yield chunk
      }
      this.checker.end()
    } catch (error) {
      if (error instanceof FileRejected) this.rejected = error
      throw error
    }
  }
}

/**
 * Stores the file of the request as a load. With an Idempotency-Key the id of the load depends on
 * that key, so a repetition finds the load. Fails with 400, 413 or 422, and changes nothing then.
 */
export const receiveLoad = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  format: FileFormat,
  isLenient: boolean
): Effect.fn.Return<AcceptedLoad, HandlerFailure> {
  const { blobs, nowMs, settings: { contentBytesMax } } = service
  const { request } = call
  const keyed = request.headers.has("idempotency-key")
    ? yield* readKeyedRequest(service, request, yield* keyOwnerOf(service, call), undefined)
    : undefined
  const id = (keyed?.idsFor("stream") ?? call.ids).id("load")
  const blob = loadBlob(id, randomId())
  const checker = new RowChecker(service.documentParser, format, isLenient)
  const body = new CheckedBody(call.body, checker)
  const commit = (): Effect.Effect<BlobCommit<StoredLoad>, HandlerFailure> => {
    const { problems, rows, skipped } = checker
    const startedMs = nowMs()
    const fingerprint = keyed?.fingerprintOf(`${body.digest()} lenient=${isLenient}`)
    const load: CustomerLoad = {
      state: "pending",
      format,
      ...fingerprint === undefined ? {} : { fingerprint },
      blob,
      rows,
      skipped,
      problems,
      at: 0,
      created: 0,
      replaced: 0,
      startedMs,
      touchedMs: startedMs
    }
    return Effect.map(storeLoad(service, id, load), (stored) => ({
      isNamed: stored.blob === blob,
      result: { stored, isOther: stored.fingerprint !== fingerprint }
    }))
  }
  const prepared = {
    id: blob,
    source: body.bytes(),
    bytesMax: contentBytesMax,
    ownerRemoves: false
  }
  const { isOther, stored } = yield* commitBlob(blobs, prepared, commit).pipe(
    Effect.catchTag("BlobAborted", (aborted): Effect.Effect<never, HandlerFailure> => {
      if (body.rejected !== undefined) return Effect.fail(rejection(body.rejected))
      const fault = call.body.fault()
      return Effect.fail(fault === undefined ? aborted : streamError(fault, "a file"))
    })
  )
  if (!isOther) return { id, load: stored }
  return yield* otherRequest
})

/**
 * Taking a file of customers: it is stored as it arrives while each row is checked, and becomes a
 * load only when all of it is there and, unless rows may be passed over, right. Nothing else has
 * been changed by then.
 */
import { Effect } from "effect"
import type { DocumentParser } from "../../formats/xml/index.ts"
import { problemsMax } from "../../limits.ts"
import { type Call, type HandlerFailure, httpError, type Service } from "../../pipeline/index.ts"
import { FileBroken, FileReader, type Format } from "./customer-files.ts"
import { customerOf } from "./customer-input.ts"
import { type CustomerLoad, loadChanges, type RowProblem } from "./load.ts"

/** A fault of the file, which refuses all of it. */
class Refused extends Error {
  readonly problem: RowProblem | undefined
  constructor(detail: string, problem?: RowProblem) {
    super(detail)
    this.problem = problem
  }
}

/** Counts and checks the rows of a file. */
class Checker {
  rows = 0
  skipped = 0
  readonly problems: Array<RowProblem> = []
  private readonly reader: FileReader

  constructor(documentParser: DocumentParser, format: Format, isLenient: boolean) {
    this.reader = new FileReader(documentParser, format, (given) => {
      this.rows++
      const customer = given.ok ? customerOf(given.value) : given
      if (customer.ok) return
      const problem = { row: this.rows, detail: customer.fault }
      if (!isLenient) throw new Refused(`row ${problem.row}: ${problem.detail}`, problem)
      this.skipped++
      if (this.problems.length < problemsMax) this.problems.push(problem)
    })
  }

  write(bytes: Uint8Array): void {
    this.reading(() => this.reader.write(bytes))
  }

  end(): void {
    this.reading(() => this.reader.end())
  }

  private reading(read: () => void): void {
    try {
      read()
    } catch (error) {
      if (!(error instanceof FileBroken)) throw error
      throw new Refused(`after row ${this.rows}: ${error.message}`)
    }
  }
}

const refusal = (refused: Refused): HandlerFailure => {
  const { message, problem } = refused
  return problem === undefined
    ? httpError("malformed", message)
    : httpError("unprocessable", message, [], { row: problem.row })
}

/** The load of the request's file, durable; fails with 400, 413 or 422, and nothing is changed. */
export const receive = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  format: Format,
  isLenient: boolean
): Effect.fn.Return<{ readonly id: string; readonly load: CustomerLoad }, HandlerFailure> {
  const { pendingBlobs, blobs, nowMs, records, settings: { contentBytesMax } } = service
  const id = call.ids.id("load")
  const blob = `load=${id}`
  const checker = new Checker(service.documentParser, format, isLenient)
  let refused: Refused | undefined
  async function* checked(): AsyncGenerator<Uint8Array> {
    try {
      for await (const chunk of call.body.stream) {
        checker.write(chunk)
        yield chunk
      }
      checker.end()
    } catch (error) {
      if (error instanceof Refused) refused = error
      throw error
    }
  }
  const put = blobs.put(blob, checked(), contentBytesMax).pipe(
    Effect.catchTag("BlobAborted", (aborted): Effect.Effect<never, HandlerFailure> => {
      if (refused !== undefined) return Effect.fail(refusal(refused))
      const fault = call.body.fault()
      if (fault === "TooLarge") return Effect.fail(httpError("payload-too-large"))
      return Effect.fail(fault === "Timeout" ? httpError("request-timeout") : aborted)
    })
  )
  const commit = Effect.gen(function*() {
    yield* put
    const { problems, rows, skipped } = checker
    const startedMs = nowMs()
    const load: CustomerLoad = {
      state: "pending",
      format,
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
    yield* records.write(loadChanges(id, load)).pipe(
      Effect.tapError(() => Effect.ignore(blobs.remove(blob)))
    )
    return { id, load }
  })
  pendingBlobs.add(blob)
  return yield* commit.pipe(Effect.onError(() => Effect.sync(() => pendingBlobs.delete(blob))))
})

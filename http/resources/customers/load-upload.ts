/**
 * Receives a file of customers: stores it as a blob and checks each row. It becomes a load only
 * when it is complete and, unless invalid rows may be skipped, valid. Nothing else changes before.
 */
import { Effect } from "effect"
import { type BlobCommit, commitBlob, type StorageFailure } from "../../../runtime/index.ts"
import type { DocumentParser } from "../../formats/xml/index.ts"
import { problemsMax } from "../../limits.ts"
import { type Call, type HandlerFailure, httpError, type Service } from "../../pipeline/index.ts"
import { CustomerFileParser, FileBroken, type FileFormat } from "./customer-files.ts"
import { customerOf } from "./customer-input.ts"
import { type CustomerLoad, loadBlob, loadChanges, type RowProblem } from "./load.ts"

/** The file is rejected; `problem` names the row, when there is one. */
class FileRejected extends Error {
  readonly problem: RowProblem | undefined
  constructor(detail: string, problem?: RowProblem) {
    super(detail)
    this.problem = problem
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
      throw new FileRejected(`after row ${this.rows}: ${error.message}`)
    }
  }
}

const rejection = ({ message, problem }: FileRejected): HandlerFailure => {
  return problem === undefined
    ? httpError("malformed", message)
    : httpError("unprocessable", message, [], { row: problem.row })
}

interface AcceptedLoad {
  readonly id: string
  readonly load: CustomerLoad
}

/** Stores the file of the request as a load. Fails with 400, 413 or 422, and changes nothing. */
export const receiveLoad = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  format: FileFormat,
  isLenient: boolean
): Effect.fn.Return<AcceptedLoad, HandlerFailure> {
  const { blobs, nowMs, records, settings: { contentBytesMax } } = service
  const id = call.ids.id("load")
  const blob = loadBlob(id)
  const checker = new RowChecker(service.documentParser, format, isLenient)
  let rejected: FileRejected | undefined
  async function* checked(): AsyncGenerator<Uint8Array> {
    try {
      for await (const chunk of call.body.stream) {
        checker.write(chunk)
        yield chunk
      }
      checker.end()
    } catch (error) {
      if (error instanceof FileRejected) rejected = error
      throw error
    }
  }
  const commit = (): Effect.Effect<BlobCommit<AcceptedLoad>, StorageFailure> => {
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
    return Effect.as(records.write(loadChanges(id, load)), {
      isNamed: true,
      result: { id, load }
    })
  }
  const prepared = { id: blob, source: checked(), bytesMax: contentBytesMax, ownerRemoves: false }
  return yield* commitBlob(blobs, prepared, commit).pipe(
    Effect.catchTag("BlobAborted", (aborted): Effect.Effect<never, HandlerFailure> => {
      if (rejected !== undefined) return Effect.fail(rejection(rejected))
      return Effect.fail(call.body.isTooLarge() ? httpError("payload-too-large") : aborted)
    })
  )
})

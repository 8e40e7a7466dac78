/** The handler of an export: who may read it, how many are made at once, and the audit log. */
import { Effect } from "effect"
import { auditedStream, beginAudited } from "../../audit/index.ts"
import { callerOf } from "../../auth/index.ts"
import { exportsAtOnceMax } from "../../limits.ts"
import { emptySource, type HandlerAnswer, type HandlerFailure, type HttpError, httpError, noStore,
  type ResourceHandler, type Service } from "../../pipeline/index.ts"
import { accountPath, type AccountRef, accountRefOf, describeAccount } from "../accounts/index.ts"
import { exportLines } from "./export-lines.ts"

const exportAnswer = (
  name: string,
  source: AsyncIterable<Uint8Array>,
  ended: () => void
): HandlerAnswer => ({
  _tag: "Stream",
  status: 200,
  headers: [
    ["Content-Type", "application/x-ndjson"],
    ["Content-Disposition", `attachment; filename="${name}.ndjson"`],
    ...noStore
  ],
  lengthBytes: undefined,
  source,
  holdsPlace: true,
  ended
})

/** Exports an account. The memory of all exports of a node is bounded by their number. */
export const getExport = (service: Service): ResourceHandler["handle"] => {
  const running = new Set<string>()
  const checkRoom = ({ name }: AccountRef): HttpError | undefined => {
    if (running.has(name)) {
      const detail = `an export of the account ${name} is being made at this node: wait for its end`
      return httpError("conflict", detail)
    }
    if (running.size < exportsAtOnceMax) return undefined
    const detail =
      `${exportsAtOnceMax} exports are being made at this node: wait until one has ended`
    return httpError("conflict", detail)
  }
  async function* bytesOf(ref: AccountRef): AsyncGenerator<Uint8Array> {
    yield* exportLines(service, await Effect.runPromise(describeAccount(service, ref)))
  }
  return Effect.fnUntraced(function*(call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const ref = yield* accountRefOf(service, call)
    yield* describeAccount(service, ref)
    const full = checkRoom(ref)
    if (full !== undefined) return yield* full
    if (call.request.method === "HEAD") return exportAnswer(ref.name, emptySource, () => {})
    // Before the entry in the audit log, so that two requests at once do not both begin.
    running.add(ref.name)
    const release = () => void running.delete(ref.name)
    const operation = {
      caller: callerOf(ref.caller),
      action: "account.export",
      target: accountPath(ref.name)
    } as const
    const begun = yield* Effect.onError(
      beginAudited(service, call, operation),
      () => Effect.sync(release)
    )
    const { ended, source } = auditedStream(begun, release, () => bytesOf(ref))
    return exportAnswer(ref.name, source, ended)
  })
}

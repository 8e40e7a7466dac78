/** `restante audit verify --stored`: the audit log of a stopped store, or of a cluster. */
import { Effect, Schema, type Scope } from "effect"
import { AuditState, ChainCheck, type ChainFault,
  type ChainPoint } from "../../actors/audit/index.ts"
import { auditId, auditKind } from "../../actors/index.ts"
import { address, decodeStoredState } from "../../runtime/index.ts"
import { archiveFailed, type ArchiveFailure, type ArchiveSource,
  openSource } from "../archive/index.ts"
import type { CommandFailed } from "../command-failure.ts"
import { type NodeSettings, storageLocation } from "../settings/index.ts"

/** The result: how many entries there are, the last one, and the first fault. */
export interface StoredAudit {
  readonly entries: number
  readonly last: ChainPoint | undefined
  readonly fault: ChainFault | undefined
}

const decodeState = Schema.decodeUnknownSync(Schema.fromJsonString(AuditState))

const partsOfLog = ({ contents }: ArchiveSource) => contents.actor(address(auditKind, auditId))

const stateOf = async (source: ArchiveSource): Promise<AuditState | undefined> => {
  let state: AuditState | undefined
  for await (const part of partsOfLog(source)) {
    if (part._tag !== "Actor" || part.state === undefined) continue
    state = decodeState(decodeStoredState(part.state).text)
  }
  return state
}

/** Reads the log twice: its ends are in its state, which comes after its entries. */
const followChain = async (source: ArchiveSource): Promise<StoredAudit> => {
  const state = await stateOf(source)
  if (state === undefined) return { entries: 0, last: undefined, fault: undefined }
  const { anchor, last } = state
  const check = new ChainCheck(anchor)
  for await (const { items } of partsOfLog(source)) {
    // A running cluster appends and removes entries meanwhile.
    for (const item of items.filter(({ n }) => n > anchor.n && n <= last.n)) {
      const fault = check.add(item)
      if (fault !== undefined) return { entries: check.point.n - anchor.n, last, fault }
    }
  }
  return { entries: check.point.n - anchor.n, last, fault: check.end(last) }
}

const checkStore = Effect.fnUntraced(function*(
  settings: NodeSettings
): Effect.fn.Return<StoredAudit, ArchiveFailure, Scope.Scope> {
  const source = yield* openSource(settings)
  return yield* Effect.tryPromise({
    try: () => followChain(source),
    catch: (error) => error instanceof Error ? error : new Error(String(error))
  })
})

/** Checks the chain in the store of the settings. Fails when an embedded store is in use. */
export const checkStoredAudit = (
  settings: NodeSettings
): Effect.Effect<StoredAudit, CommandFailed> =>
  Effect.mapError(
    Effect.scoped(checkStore(settings)),
    (failure) => archiveFailed(storageLocation(settings), undefined, failure)
  )

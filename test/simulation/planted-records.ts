/** Planted bugs in the handling of records, each of an outcome that is not known. */
import { Effect } from "effect"
import { httpError } from "../../http/pipeline/index.ts"
import type { RecordChange, RecordsApi, StorageFailure } from "../../runtime/index.ts"
import type { WorldSeams } from "./world.ts"

type WriteIf = RecordsApi["writeIf"]

/** The service with another way to change records. */
const writing = (change: (records: RecordsApi) => WriteIf): WorldSeams => ({
  service: (service) => {
    const records = { ...service.records, writeIf: change(service.records) }
    return { ...service, records }
  }
})

const isRemoval = ([first]: ReadonlyArray<RecordChange>): boolean => first?.value === null

/** A write that failed is reported as one that was certainly not kept. */
const refusedInDoubt = writing(({ writeIf }) => (expected, changes) =>
  Effect.catch(
    writeIf(expected, changes),
    // The type of the port lacks this failure, which every handler of the service may have.
    () => Effect.fail(httpError("conflict") as unknown as StorageFailure)
  )
)

/** A removal that failed is reported as done. */
const removedInDoubt = writing(({ writeIf }) => (expected, changes) =>
  isRemoval(changes)
    ? Effect.catch(writeIf(expected, changes), () => Effect.succeed(true))
    : writeIf(expected, changes)
)

/** The entries of indexes are written after the record, and not with it. */
const indexApart = writing((records) => (expected, changes) =>
  Effect.flatMap(
    records.writeIf(expected, changes.slice(0, 1)),
    (isWritten) =>
      isWritten ? Effect.as(records.write(changes.slice(1)), true) : Effect.succeed(false)
  )
)

/** The planted bugs by name. */
export const plantedRecords: Readonly<Record<string, WorldSeams>> = {
  "record-refused-in-doubt": refusedInDoubt,
  "record-removed-in-doubt": removedInDoubt,
  "index-apart": indexApart
}

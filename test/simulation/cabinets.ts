/** Operations of clients on cabinets. */
import { cabinetKind } from "../../actors/index.ts"
import type { CabinetContent, CabinetReply } from "../../actors/cabinet/protocol.ts"
import { address } from "../../runtime/index.ts"
import type { VersionedOutput } from "./versioned.ts"
import { askToCreate, askUntilAnswered, caller, type Operations, owner, reasonOf,
  type Turn } from "./operations.ts"

const addressOf = (resource: string) => address(cabinetKind, resource.replace("/", "-"))

const contentsOf = (mark: number): CabinetContent => ({
  title: `title ${mark}`,
  mailboxes: [{ name: `mailbox-${mark % 2}` }]
})

const textOf = ({ title }: CabinetContent): string => title ?? ""

const outputOf = (reported: unknown): VersionedOutput => {
  const reason = reasonOf(reported)
  if (reason === "PreconditionFailed") return { _tag: "Outdated" }
  if (reason !== undefined) return { _tag: "Gone" }
  // The replies of a cabinet have the types of its protocol.
  const reply = reported as CabinetReply
  switch (reply._tag) {
    case "Created":
    case "Replaced":
      return { _tag: "Done", version: reply.view.version }
    case "Described":
      return { _tag: "Shown", version: reply.view.version, contents: textOf(reply.view) }
    case "Done":
      return { _tag: "Deleted" }
  }
}

/** Stores the observed version for conditional requests. */
const seeing = ({ known }: Turn, resource: string) => (reported: unknown): VersionedOutput => {
  const output = outputOf(reported)
  if (output._tag === "Shown") known.versions.set(resource, output.version)
  return output
}

export const cabinetVerbs: Operations = {
  create: (turn, operation) => {
    const { mark, resource } = operation
    const contents = contentsOf(mark)
    const message = { _tag: "Create", requestId: `make ${resource}`, owner, contents }
    const input = { kind: "create", contents: textOf(contents) } as const
    return askToCreate(turn, operation, addressOf(resource), message, {
      all: turn.records.versioned,
      resource,
      input,
      outputOf
    })
  },
  replace: (turn, operation) => {
    const { choice, mark, resource } = operation
    const contents = contentsOf(mark)
    const seen = choice < 0.5 ? turn.known.versions.get(resource) : undefined
    const ifVersion = seen === undefined ? {} : { ifVersion: seen }
    return askUntilAnswered(turn, operation, addressOf(resource), {
      _tag: "Replace",
      caller,
      contents,
      ...ifVersion
    }, {
      all: turn.records.versioned,
      resource,
      input: { kind: "replace", contents: textOf(contents), ...ifVersion } as const,
      outputOf
    })
  },
  describe: (turn, operation) => {
    const { resource } = operation
    return askUntilAnswered(turn, operation, addressOf(resource), { _tag: "Describe", caller }, {
      all: turn.records.versioned,
      resource,
      input: { kind: "show" } as const,
      outputOf: seeing(turn, resource)
    })
  },
  remove: (turn, operation) => {
    const { choice, resource } = operation
    if (choice > 0.3) return Promise.resolve()
    return askUntilAnswered(turn, operation, addressOf(resource), { _tag: "Remove", caller }, {
      all: turn.records.versioned,
      resource,
      input: { kind: "delete" } as const,
      outputOf
    })
  }
}

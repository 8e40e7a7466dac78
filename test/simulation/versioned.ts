/**
 * The model of a resource that is replaced as a whole, with a version number: a cabinet, or the
 * settings of a mailbox.
 */
import type { Model } from "../../runtime/testing/index.ts"

export type VersionedInput =
  | { readonly kind: "create"; readonly contents: string }
  | { readonly kind: "show" }
  | { readonly kind: "replace"; readonly contents: string; readonly ifVersion?: number | undefined }
  | { readonly kind: "delete" }

export type VersionedOutput =
  | { readonly _tag: "Done"; readonly version: number }
  | { readonly _tag: "Shown"; readonly version: number; readonly contents: string }
  | { readonly _tag: "Deleted" }
  | { readonly _tag: "Outdated" }
  | { readonly _tag: "Gone" }

export interface VersionedState {
  readonly is: "absent" | "there" | "deleted"
  readonly version: number
  readonly contents: string
}

type After = readonly [VersionedOutput, VersionedState]

const inThere = (state: VersionedState, input: VersionedInput): After | undefined => {
  const { contents, version } = state
  switch (input.kind) {
    case "create":
      return
    case "show":
      return [{ _tag: "Shown", version, contents }, state]
    case "replace":
      return input.ifVersion !== undefined && input.ifVersion !== version
        ? [{ _tag: "Outdated" }, state]
        : [
          { _tag: "Done", version: version + 1 },
          { is: "there", version: version + 1, contents: input.contents }
        ]
    case "delete":
      return [{ _tag: "Deleted" }, { is: "deleted", version: 0, contents: "" }]
  }
}

const after = (state: VersionedState, input: VersionedInput): After | undefined => {
  if (state.is === "there") return inThere(state, input)
  return state.is === "absent" && input.kind === "create"
    ? [{ _tag: "Done", version: 1 }, { is: "there", version: 1, contents: input.contents }]
    : [{ _tag: "Gone" }, state]
}

export const versioned: Model<VersionedState, VersionedInput, VersionedOutput> = {
  initial: { is: "absent", version: 0, contents: "" },
  keyOf: ({ contents, is, version }) => `${is} ${version} ${contents}`,
  step: (state, input, output) => {
    const [reported, next] = after(state, input) ?? []
    if (next === undefined) return []
    return output === undefined || JSON.stringify(output) === JSON.stringify(reported) ? [next] : []
  }
}

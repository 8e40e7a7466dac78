/** A new block in a document or form. */
import { Effect } from "effect"
import { type Block, blockReasonCharsMax, blockValueCharsMax, normalHost,
  sha256 } from "../../../actors/index.ts"
import { isSlug } from "../../auth/credentials/index.ts"
import { childText, isText } from "../../formats/xml/index.ts"
import { type Call, type HandlerFailure, readInput, type Service,
  unprocessable } from "../../pipeline/index.ts"
import { networkOfText } from "../../rates/index.ts"
import { parseExpiry } from "../accounts/index.ts"

/** The host of an origin, a URI or a host name; undefined for another text. */
const hostOf = (text: string): string | undefined => {
  const [, host] =
    /^(?:https?:\/\/)?([a-z0-9_](?:[a-z0-9._-]*[a-z0-9_])?|\[[0-9a-f:.]+\])(?::\d+)?(?:\/.*)?$/i
      .exec(text) ?? []
  return host === undefined ? undefined : normalHost(host)
}

/** The value of each kind as it is compared; undefined for an invalid text. */
const valueOf: Readonly<Record<Block["kind"], (text: string) => string | undefined>> = {
  account: (text) => isSlug(text) ? text : undefined,
  network: networkOfText,
  host: hostOf
}

const kinds = ["account", "network", "host"] as const

/** Two blocks of the same thing are one. */
const blockId = (kind: Block["kind"], value: string): string =>
  sha256(`block\n${kind}\n${value}`).slice(0, 22)

/** The new block of a request; 422 for an invalid one. */
export const readBlock = Effect.fnUntraced(function*(
  service: Service,
  call: Call
): Effect.fn.Return<Block, HandlerFailure> {
  const input = yield* readInput(call, "block", { form: true })
  const field = (name: string): string | undefined =>
    (input._tag === "Form" ? input.fields.get(name) : childText(input.root, name))?.trim() ||
    undefined
  const given = kinds.flatMap((kind) => {
    const text = field(kind)
    return text === undefined ? [] : [{ kind, text }]
  })
  const [one] = given
  if (one === undefined || given.length > 1) {
    return yield* unprocessable("a block has one of account, network and host")
  }
  const value = one.text.length > blockValueCharsMax ? undefined : valueOf[one.kind](one.text)
  if (value === undefined) {
    return yield* unprocessable(
      `${one.kind} must be the name of an account, an address or network such as 203.0.113.0/24, ` +
        "or a host such as spam.example"
    )
  }
  const reason = field("reason")
  if (reason !== undefined && (reason.length > blockReasonCharsMax || !isText(reason))) {
    return yield* unprocessable(`a reason has at most ${blockReasonCharsMax} characters`)
  }
  const expires = field("expires")
  const nowMs = service.nowMs()
  const untilMs = expires === undefined ? undefined : parseExpiry(expires, nowMs)
  if (expires !== undefined && (untilMs === undefined || untilMs <= nowMs)) {
    return yield* unprocessable(
      "expires must be a time in the future, a duration such as P7D, or seconds"
    )
  }
  return {
    id: blockId(one.kind, value),
    kind: one.kind,
    value,
    atMs: nowMs,
    ...untilMs === undefined ? {} : { untilMs },
    ...reason === undefined ? {} : { reason }
  }
})

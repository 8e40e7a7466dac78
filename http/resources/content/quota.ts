/** The quotas of what clients store, and their answers (protocol §7). */
import { Effect } from "effect"
import { networkKey, type QuotaExceeded } from "../../../actors/index.ts"
import { keyRecordBytes } from "../../limits.ts"
import { type Call, type HandlerFailure, httpError, type KeyCharge, noCharge,
  type Service } from "../../pipeline/index.ts"

/** The network whose daily limit a request counts for; none for accounts and this machine. */
export const chargedNetwork = (
  service: Service,
  call: Pick<Call, "request">,
  account: string | undefined
): string | undefined => {
  if (account !== undefined) return undefined
  const { isLocal, network } = service.clients.clientOf(call.request)
  return isLocal ? undefined : network
}

const dayMs = 24 * 60 * 60_000

/** 507: a quota is used up. The use of an account is shown to the account alone. */
export const quotaError = (
  { httpMetrics, nowMs }: Service,
  { maxBytes, name, quota, usedBytes, wantedBytes }: QuotaExceeded,
  account: string | undefined
): HandlerFailure => {
  httpMetrics.overQuota[quota]++
  const figures = { quota, "used-bytes": usedBytes, "max-bytes": maxBytes }
  const use = `${usedBytes} of ${maxBytes} bytes, and this needs ${wantedBytes}`
  switch (quota) {
    case "anonymous": {
      const detail = `content of clients without an account uses ${use} (ANONYMOUS_BYTES_MAX): ` +
        "publish it with an account, or try again when other content was deleted or has expired"
      return httpError("quota-exceeded", detail, [], figures)
    }
    case "network": {
      const until = new Date((Math.floor(nowMs() / dayMs) + 1) * dayMs).toISOString()
      const detail = `clients without an account in the network ${name} have stored ${use} ` +
        `(ANONYMOUS_NETWORK_BYTES_MAX a day, with ${keyRecordBytes} for each Idempotency-Key): ` +
        `use an account, try again at ${until}, or let the operator raise the limit`
      return httpError("quota-exceeded", detail, [], { ...figures, until })
    }
    case "account": {
      if (account !== name) {
        const detail = "the account that this content counts for has no room for it: send less, " +
          "or ask the owner to delete some of its content"
        return httpError("quota-exceeded", detail, [], { quota })
      }
      const detail = `the content of the account ${name} uses ${use} (ACCOUNT_BYTES_MAX): ` +
        "delete some, which GET /content lists, or ask the operator for more"
      return httpError("quota-exceeded", detail, [], figures)
    }
  }
}

/**
 * Counts bytes that a request without an account stores beside content for the day of its network;
 * 507 if they are too many. Those of clients on this machine are not counted.
 */
export const chargeNetwork = Effect.fnUntraced(function*(
  service: Service,
  call: Pick<Call, "request">,
  bytes: number
): Effect.fn.Return<void, HandlerFailure> {
  const name = chargedNetwork(service, call, undefined)
  if (name === undefined) return
  const network = networkKey(name, service.nowMs())
  const reply = yield* service.usage.submit({ _tag: "Spend", network, bytes })
  if (reply._tag === "QuotaExceeded") {
    return yield* Effect.fail(quotaError(service, reply, undefined))
  }
})

/**
 * Counts small records of a client without an account in the same way, in blocks, so that few of
 * them need a write.
 */
export const chargePrepaid = Effect.fnUntraced(function*(
  service: Service,
  call: Pick<Call, "request">,
  bytes: number
): Effect.fn.Return<KeyCharge, HandlerFailure> {
  const name = chargedNetwork(service, call, undefined)
  if (name === undefined) return noCharge
  const network = networkKey(name, service.nowMs())
  const { prepaid } = service.usage
  const reply = yield* prepaid.take(network, bytes)
  if (reply._tag === "QuotaExceeded") {
    return yield* Effect.fail(quotaError(service, reply, undefined))
  }
  return { giveBack: () => prepaid.giveBack(network, bytes) }
})

/**
 * A body counts against a quota before its bytes are stored (protocol §7): all of it at once where
 * its length is known, else in steps that double. A body that passes the quota is cut.
 */
import { Cause, Effect, Exit } from "effect"
import { networkKey, type QuotaExceeded, reservationMs } from "../../../actors/index.ts"
import { reservationBytesMin, reservationRenewMs } from "../../limits.ts"
import { type Call, diskLow, type HandlerFailure, httpError,
  type Service } from "../../pipeline/index.ts"
import { quotaError } from "./quota.ts"

/** Who pays for a body. */
export interface Charge {
  /** New content, and the account that it counts for; undefined where a body is replaced. */
  readonly publication: { readonly owner?: string; readonly atMs: number } | undefined
  /** The caller's account. It learns how much its own account uses. */
  readonly account: string | undefined
  /** The network of a caller without an account; undefined for one on this machine. */
  readonly network: string | undefined
  /** Undefined for a body in chunks. */
  readonly lengthBytes: number | undefined
}

/**
 * Content-Length of a request, which the wire has checked; undefined for a body in chunks. A field
 * that came twice with one length is `5, 5`.
 */
export const announcedBytes = ({ request }: Pick<Call, "request">): number | undefined => {
  const field = request.headers.get("content-length")
  return field === undefined ? undefined : Number.parseInt(field, 10)
}

const isExceeded = (failure: HandlerFailure | QuotaExceeded): failure is QuotaExceeded =>
  failure._tag === "QuotaExceeded"

/** The reservation of one body, while its bytes are received. */
export class ChargedUpload {
  private readonly service: Service
  private readonly contentId: string
  private readonly blobId: string
  private readonly charge: Charge
  /** The network and the day for which the whole body counts. */
  private readonly network: string | undefined
  private reservedBytes = 0
  private reservedAtMs = 0
  /** Why the body was cut. */
  private failure: HandlerFailure | undefined

  constructor(service: Service, contentId: string, blobId: string, charge: Charge) {
    this.service = service
    this.contentId = contentId
    this.blobId = blobId
    this.charge = charge
    const { network } = charge
    this.network = network === undefined ? undefined : networkKey(network, service.nowMs())
  }

  /** Why the body ended early; undefined if this upload is not the reason. */
  get cut(): HandlerFailure | undefined {
    return this.failure
  }

  /** Reserves what is known of the body; 507 if there is no room for it. */
  readonly begin: Effect.Effect<void, HandlerFailure> = Effect.suspend(() =>
    this.charge.lengthBytes === undefined
      ? this.grow(0)
      : this.orProblem(this.reserve(this.charge.lengthBytes))
  )

  /** Renews an old reservation before the commit that needs it. */
  readonly renew: Effect.Effect<void, HandlerFailure> = Effect.suspend(() =>
    this.isOld ? this.orProblem(this.reserve(this.reservedBytes)) : Effect.void
  )

  /** Nothing was stored. If this fails, the reservation ends when it is due. */
  readonly cancel: Effect.Effect<void> = Effect.suspend(() =>
    Effect.ignore(this.service.usage.submit({
      _tag: "Cancel",
      contentId: this.contentId,
      reservationId: this.blobId
    }))
  )

  /**
   * The bytes of a body, cut where the quota ends; one without an account also when the free disk
   * space falls below its floor.
   */
  async *counted(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const { diskFloor, settings: { contentBytesMax } } = this.service
    const isStranger = this.charge.account === undefined
    let lengthBytes = 0
    for await (const chunk of source) {
      if (isStranger && diskFloor?.isBelow === true) await this.run(diskLow)
      lengthBytes += chunk.byteLength
      // The store refuses a body beyond the largest content.
      if (lengthBytes > this.reservedBytes && lengthBytes <= contentBytesMax) {
        await this.run(this.grow(lengthBytes))
      } else if (this.isOld) await this.run(this.renew)
      yield chunk
    }
  }

  private get isOld(): boolean {
    return this.service.nowMs() - this.reservedAtMs > reservationRenewMs
  }

  private async run(effect: Effect.Effect<void, HandlerFailure>): Promise<void> {
    const exit = await Effect.runPromiseExit(effect)
    if (Exit.isSuccess(exit)) return
    const failed = exit.cause.reasons.find((one) => one._tag === "Fail")
    if (failed?._tag === "Fail") this.failure = failed.error
    throw new Error(`the body was cut: ${Cause.pretty(exit.cause)}`)
  }

  /**
   * Reserves at least `lengthBytes`: twice as much as before, or all that the quota leaves. A
   * repetition may always send what is stored.
   */
  private grow(lengthBytes: number): Effect.Effect<void, HandlerFailure> {
    const { contentBytesMax } = this.service.settings
    const doubled = Math.min(
      contentBytesMax,
      Math.max(lengthBytes, 2 * this.reservedBytes, reservationBytesMin)
    )
    const all = (exceeded: QuotaExceeded) => {
      const { maxBytes, repeatableBytes = 0, usedBytes, wantedBytes } = exceeded
      const left = maxBytes - usedBytes
      const free = Math.max(left > 0 ? doubled - wantedBytes + left : 0, repeatableBytes)
      return free >= Math.max(lengthBytes, 1) && free < doubled
        ? this.reserve(free)
        : Effect.fail(exceeded)
    }
    return this.orProblem(Effect.catchIf(this.reserve(doubled), isExceeded, all))
  }

  private reserve(bytes: number): Effect.Effect<void, HandlerFailure | QuotaExceeded> {
    const { blobId, charge: { publication }, contentId, network, service } = this
    const nowMs = service.nowMs()
    return Effect.flatMap(
      service.usage.submit({
        _tag: "Reserve",
        contentId,
        publication,
        reservation: {
          id: blobId,
          bytes,
          dueMs: nowMs + reservationMs,
          ...network === undefined ? {} : { network }
        }
      }),
      (reply): Effect.Effect<void, HandlerFailure | QuotaExceeded> => {
        if (reply._tag === "QuotaExceeded") return Effect.fail(reply)
        if (reply._tag === "Busy") return Effect.fail(tooManyUploads)
        this.reservedBytes = bytes
        this.reservedAtMs = nowMs
        return Effect.void
      }
    )
  }

  private orProblem(
    reserving: Effect.Effect<void, HandlerFailure | QuotaExceeded>
  ): Effect.Effect<void, HandlerFailure> {
    return Effect.mapError(reserving, (failure) => {
      if (!isExceeded(failure)) return failure
      return quotaError(this.service, failure, this.charge.account)
    })
  }
}

const tooManyUploads: HandlerFailure = httpError(
  "overloaded",
  "too many requests replace this content at the same time; try again when they have ended"
)

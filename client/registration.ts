/** Push registrations (protocol §1.4), as their clients see them. */
import { removeResource } from "./content.ts"
import { lookMs } from "./limits.ts"
import { either, type HttpTransport, type JsonObject, listOf, newKey, numberOf, optionalNumber,
  optionalText, pause, textOf } from "./transport/index.ts"

/** How a registration stands: `unverified` until its callback has echoed the challenge. */
export interface RegistrationInfo {
  readonly href: string
  /** `unverified`, `active` or `suspended`, and what a later service may have. */
  readonly status: string
  /** `native` (Standard Webhooks) or `websub`. */
  readonly form: string
  readonly callback: string
  readonly attempts: number
  readonly last: string | undefined
  readonly next: string | undefined
  /** Status code of the last attempt, and what was wrong with it. */
  readonly code: number | undefined
  readonly problem: string | undefined
  readonly leaseUntil: string | undefined
}

const stateOf = (document: JsonObject): RegistrationInfo => ({
  href: textOf(document, "href"),
  status: textOf(document, "status"),
  form: textOf(document, "form"),
  callback: textOf(document, "callback"),
  attempts: numberOf(document, "attempts"),
  last: optionalText(document, "last"),
  next: optionalText(document, "next"),
  code: optionalNumber(document, "code"),
  problem: optionalText(document, "problem"),
  leaseUntil: optionalText(document, "lease-until")
})

const asJson = { "content-type": "application/json" }

/** A registration, by its URI. */
export class Registration {
  readonly href: string
  private readonly transport: HttpTransport
  private readonly authorization: string | undefined

  constructor(transport: HttpTransport, href: string, authorization: string | undefined) {
    this.transport = transport
    this.href = href
    this.authorization = authorization
  }

  async state(signal?: AbortSignal): Promise<RegistrationInfo> {
    const { authorization, href: uri } = this
    const asked = { method: "GET", uri, authorization, signal } as const
    return stateOf((await this.transport.json(asked)).document)
  }

  /** Waits until it stands so: until its callback is verified, unless another status is given. */
  async wait(
    { signal, status = "active" }: {
      readonly status?: string | undefined
      readonly signal?: AbortSignal | undefined
    } = {}
  ): Promise<RegistrationInfo> {
    for (;;) {
      const state = await this.state(signal)
      if (state.status === status) return state
      await pause(lookMs, either(this.transport.endpoint.signal, signal))
    }
  }

  /** Lifts a suspension, or has the callback, or another one, verified again. */
  async lift(callback?: string): Promise<RegistrationInfo> {
    const { authorization, href: uri } = this
    const body = JSON.stringify(callback === undefined ? {} : { callback })
    const asked = { method: "PUT", uri, authorization, headers: asJson, body } as const
    return stateOf((await this.transport.json(asked)).document)
  }

  /** A new secret, told this once; pushes are signed with the older one, too, for a while. */
  async renewSecret(): Promise<string> {
    const { document } = await this.transport.json({
      method: "POST",
      uri: `${this.href}/secret`,
      headers: { "idempotency-key": newKey() },
      authorization: this.authorization
    })
    return textOf(document, "secret")
  }

  /** Nothing is pushed afterwards. */
  delete(): Promise<void> {
    return removeResource(this.transport, this.href, {}, this.authorization)
  }
}

/** A registration that was just made. */
export interface NewRegistration {
  readonly registration: Registration
  /** `whsec_…`: what its pushes are verified with. */
  readonly secret: string
  readonly state: RegistrationInfo
}

export const makeRegistration = async (
  transport: HttpTransport,
  mailbox: string,
  authorization: string | undefined,
  { callback, idempotencyKey }: {
    readonly callback: string
    readonly idempotencyKey?: string | undefined
  }
): Promise<NewRegistration> => {
  const { document } = await transport.json({
    method: "POST",
    uri: `${mailbox}/registrations`,
    headers: { ...asJson, "idempotency-key": idempotencyKey ?? newKey() },
    body: JSON.stringify({ callback }),
    authorization
  })
  const state = stateOf(document)
  return {
    registration: new Registration(transport, state.href, authorization),
    secret: textOf(document, "secret"),
    state
  }
}

export const registrationsOf = async (
  transport: HttpTransport,
  mailbox: string,
  authorization: string | undefined
): Promise<ReadonlyArray<Registration>> => {
  const uri = `${mailbox}/registrations`
  const { document } = await transport.json({ method: "GET", uri, authorization })
  return listOf(document, "registration").map((one) =>
    new Registration(transport, textOf(one, "href"), authorization)
  )
}

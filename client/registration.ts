/** Push registrations (protocol §1.4), from the view of their clients. */
import { removeResource } from "./content.ts"
import { pollIntervalMs } from "./limits.ts"
import { type HttpTransport, type JsonObject, listOf, numberOf, optionalNumber, optionalText,
  pagesOf, parseObject, type PostOptions, textOf } from "./transport/index.ts"

/** The state of a registration. */
export interface RegistrationInfo {
  readonly href: string
  /** `unverified` until the callback has echoed the challenge, then `active` or `suspended`. */
  readonly status: string
  /** `native` (Standard Webhooks) or `websub`. */
  readonly form: string
  readonly callback: string
  readonly attempts: number
  readonly last: string | undefined
  readonly next: string | undefined
  /** Status code and problem of the last attempt. */
  readonly code: number | undefined
  readonly problem: string | undefined
  readonly leaseUntil: string | undefined
}

const infoOf = (document: JsonObject): RegistrationInfo => ({
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
    const request = { method: "GET", uri, authorization, signal } as const
    return infoOf((await this.transport.json(request)).document)
  }

  /** Polls until the status is this one; by default, until the callback is verified. */
  async wait(
    { signal, status = "active" }: {
      readonly status?: string | undefined
      readonly signal?: AbortSignal | undefined
    } = {}
  ): Promise<RegistrationInfo> {
    for (;;) {
      const state = await this.state(signal)
      if (state.status === status) return state
      await this.transport.pause(pollIntervalMs, signal)
    }
  }

  /** Lifts a suspension and verifies the callback, or another one, again. */
  async lift(callback?: string): Promise<RegistrationInfo> {
    const { authorization, href, transport } = this
    const document = callback === undefined ? {} : { callback }
    return infoOf(parseObject((await transport.put(href, document, { authorization })).text))
  }

  /** A new secret, which the service shows only once. For a day, pushes are signed with both. */
  async renewSecret(): Promise<string> {
    const { authorization, href, transport } = this
    const { text } = await transport.post(`${href}/secret`, undefined, { authorization })
    return textOf(parseObject(text), "secret")
  }

  /** Ends the registration: no push starts afterwards. */
  delete(): Promise<void> {
    return removeResource(this.transport, this.href, {}, this.authorization)
  }
}

/** A registration that has just been created. */
export interface NewRegistration {
  readonly registration: Registration
  /** `whsec_…`: verifies the signatures of its pushes. */
  readonly secret: string
  readonly state: RegistrationInfo
}

/** Registers a callback for the changes of a mailbox (A12). */
export const createRegistration = async (
  transport: HttpTransport,
  mailbox: string,
  authorization: string | undefined,
  { callback, ...options }: PostOptions & { readonly callback: string }
): Promise<NewRegistration> => {
  const uri = `${mailbox}/registrations`
  const { text } = await transport.post(uri, { callback }, { ...options, authorization })
  const document = parseObject(text)
  const state = infoOf(document)
  return {
    registration: new Registration(transport, state.href, authorization),
    secret: textOf(document, "secret"),
    state
  }
}

/** The states of all registrations of a mailbox. */
export const listRegistrations = async (
  transport: HttpTransport,
  mailbox: string,
  authorization: string | undefined
): Promise<ReadonlyArray<RegistrationInfo>> => {
  const infos: Array<RegistrationInfo> = []
  for await (const page of pagesOf(transport, `${mailbox}/registrations`, { authorization })) {
    infos.push(...listOf(page, "registration").map(infoOf))
  }
  return infos
}

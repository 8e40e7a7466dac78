/** Findings about the running service, its origin of content, and what it reports of itself. */
import { Option, Schema } from "effect"
import { answerBytesRead, clockFailMs, clockWarnMs, requestMs } from "../limits.ts"
import { adminTokenOf, allSettings, baseUrlOf, isLoopback, isSecretSetting, type LoadedSettings,
  type NodeSettings, resolvedOn } from "../settings/index.ts"
import { type ServiceReport, serviceReportOf } from "../service-report.ts"
import { fail, type Finding, finding, ok, warn } from "./finding.ts"

/** The service at the address of the settings. */
export interface RunningService {
  readonly findings: ReadonlyArray<Finding>
  /** Undefined where no service of this kind responds. */
  readonly report: ServiceReport | undefined
  /** Undefined where it does not tell them to this command. */
  readonly settings: SettingTexts | undefined
}

/** The values of settings by variable, without secrets; undefined for none. */
type SettingTexts = Readonly<Record<string, string | undefined>>

/** How far another clock differs from this one, as precisely as the request's round trip allows. */
const clockOffset = (name: string, aheadMs: number, uncertaintyMs: number): Finding => {
  const offsetMs = Math.max(0, Math.abs(aheadMs) - uncertaintyMs)
  if (offsetMs <= clockWarnMs) return ok(name, "agrees with this machine's")
  const found = `${(offsetMs / 1_000).toFixed(1)} s apart from this machine's`
  const advice =
    "synchronize the clocks by NTP (chrony, systemd-timesyncd): signatures and times " +
    "of receipt depend on them"
  return finding(name, found, advice, { fails: offsetMs > clockFailMs, warns: true })
}

/** The start of a body as text: that of somebody else's service may have any size. */
const startOf = async (response: Response): Promise<string> => {
  const decoder = new TextDecoder()
  let text = ""
  let sizeBytes = 0
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes, { stream: true })
    sizeBytes += bytes.length
    if (sizeBytes >= answerBytesRead) break
  }
  return text
}

const request = (url: string): Promise<Response> =>
  fetch(url, {
    headers: { accept: "application/json, text/plain;q=0.5" },
    signal: AbortSignal.timeout(requestMs)
  })

const SettingsDocument = Schema.Struct({
  setting: Schema.Array(Schema.Struct({
    variable: Schema.String,
    value: Schema.optionalKey(Schema.String)
  }))
})

const decodeSettings = Schema.decodeUnknownOption(Schema.fromJsonString(SettingsDocument))

/** The settings that a service tells admins; the token is sent with TLS or on this machine. */
const settingsAt = async (
  origin: string,
  token: string | undefined
): Promise<SettingTexts | undefined> => {
  const isPrivate = origin.startsWith("https:") || isLoopback(origin)
  if (token === undefined || !isPrivate) return undefined
  const response = await fetch(`${origin}/settings`, {
    headers: { accept: "application/json", authorization: `Bearer ${token}` },
    // A redirect must not lead the token elsewhere.
    redirect: "error",
    signal: AbortSignal.timeout(requestMs)
  })
  if (!response.ok) return undefined
  const document = Option.getOrUndefined(decodeSettings(await startOf(response)))
  return document && Object.fromEntries(
    document.setting.map(({ value, variable }) => [variable, value])
  )
}

const offsetFinding = (
  response: Response,
  beforeMs: number,
  roundTripMs: number
): ReadonlyArray<Finding> => {
  const date = Date.parse(response.headers.get("date") ?? "")
  // The Date field has whole seconds: on average the clock is half a second ahead of it.
  const aheadMs = date + 500 - (beforeMs + roundTripMs / 2)
  return Number.isNaN(date)
    ? []
    : [clockOffset("service's clock", aheadMs, 500 + roundTripMs / 2)]
}

/** Asks the service whether it is ready, and for its service document. */
const askService = async (
  origin: string,
  token: string | undefined
): Promise<RunningService> => {
  const beforeMs = Date.now()
  const sentMs = performance.now()
  const response = await request(`${origin}/readyz`)
  const text = (await startOf(response)).trim()
  const clocks = offsetFinding(response, beforeMs, performance.now() - sentMs)
  if (!response.ok) {
    const found = `${origin} responds ${response.status}: ${text}`
    const findings = [warn("service", found, "see its log, and /cluster"), ...clocks]
    return { findings, report: undefined, settings: undefined }
  }
  const document = await request(`${origin}/`).then(startOf).catch(() => "")
  const report = serviceReportOf(document)
  if (report !== undefined) {
    const found = `${origin} is ready: restante ${report.version}`
    const settings = await settingsAt(origin, token).catch(() => undefined)
    return { findings: [ok("service", found), ...clocks], report, settings }
  }
  const found = `${origin} is ready, but has no service document of restante`
  const advice = "set BASE_URL to the address of the service; repeat this if it was overloaded"
  return { findings: [warn("service", found, advice), ...clocks], report, settings: undefined }
}

/**
 * The service at BASE_URL, and how far its clock differs. `token`: of an admin, where the settings
 * have none.
 */
export const findService = async (
  settings: NodeSettings,
  token: string | undefined
): Promise<RunningService> => {
  const origin = baseUrlOf(settings, settings.port)
  try {
    return await askService(origin, adminTokenOf(settings) ?? token)
  } catch {
    // Without BASE_URL, the finding of that name has the advice to set it.
    const advice = settings.baseUrl === undefined
      ? "start it (restante serve)"
      : "start it (restante serve), or set BASE_URL to its address"
    const findings = [warn("service", `nothing responds at ${origin}`, advice)]
    return { findings, report: undefined, settings: undefined }
  }
}

/** What a finding about BASE_URL says, and the address alone that a node listens at. */
const comparedElsewhere: ReadonlySet<string> = new Set(["BASE_URL", "HOST", "PORT"])

/** The settings that the service has otherwise than this command, by variable. */
const differences = (own: LoadedSettings, served: SettingTexts): ReadonlyArray<string> => {
  const texts = new Map(
    resolvedOn(own, own.settings.port).map(({ setting, text }) => [setting.variable, text])
  )
  return allSettings
    .filter((setting) => !isSecretSetting(setting))
    .map(({ variable }) => variable)
    .filter((variable) => Object.hasOwn(served, variable) && !comparedElsewhere.has(variable))
    .filter((variable) => served[variable] !== texts.get(variable))
    .map((variable) =>
      `${variable} is ${served[variable] ?? "unset"} there and ${
        texts.get(variable) ?? "unset"
      } here`
    )
}

/** Whether the service has the settings of this command. */
export const settingsFindings = (
  own: LoadedSettings,
  { report, settings }: RunningService
): ReadonlyArray<Finding> => {
  if (report === undefined) return []
  if (settings === undefined) {
    const found = "the service tells its settings to admins only: they are examined as this " +
      "command has them, so set ADMIN_TOKEN or RESTANTE_TOKEN, or run it with the environment of " +
      "the service"
    return [ok("settings", found)]
  }
  const different = differences(own, settings)
  if (different.length === 0) return [ok("settings", "the service has those of this command")]
  const advice = "give this command the environment of the service; those of the service are " +
    "examined here, except the location of its store"
  return [warn("settings", different.join("; "), advice)]
}

/** Whether CONTENT_BASE_URL reaches a service that knows it: it serves content and nothing else. */
export const contentOrigin = async (
  { contentBaseUrl }: NodeSettings
): Promise<ReadonlyArray<Finding>> => {
  if (contentBaseUrl === undefined) return []
  const name = "content origin"
  try {
    const response = await fetch(`${contentBaseUrl}/livez`, {
      signal: AbortSignal.timeout(requestMs)
    })
    const isOwn = (await startOf(response)).includes(`${contentBaseUrl} only serves content`)
    if (response.status === 404 && isOwn) {
      return [ok(name, `${contentBaseUrl} serves content alone`)]
    }
    const what = response.status === 404
      ? "404, but not as an origin of content does"
      : `${response.status} instead of 404`
    const found = `${contentBaseUrl}/livez responds ${what}`
    const advice = "let the proxy pass on Host or X-Forwarded-Host, name it in TRUSTED_PROXIES, " +
      "and give every node the same CONTENT_BASE_URL"
    return [fail(name, found, advice)]
  } catch {
    const advice = "let CONTENT_BASE_URL lead to the service, as BASE_URL does"
    return [warn(name, `nothing responds at ${contentBaseUrl}`, advice)]
  }
}

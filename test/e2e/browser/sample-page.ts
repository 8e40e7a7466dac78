/** A page to test. */
export interface SamplePage {
  readonly name: string
  readonly path: string
  readonly status: number
  /** It is seen without an account; all others by the admin. */
  readonly isStranger: boolean
}

export const samplePage = (
  name: string,
  path: string,
  { isStranger = false, status = 200 }: Partial<Pick<SamplePage, "isStranger" | "status">> = {}
): SamplePage => ({ name, path, status, isStranger })

/** Path and query of a URI of the service. */
export const pathOf = (uri: string | null): string => {
  const { pathname, search } = new URL(uri ?? "", "http://here.test")
  return pathname + search
}

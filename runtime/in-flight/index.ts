/**
 * What is in flight and ends soon, by a token: asks without an answer, effects under way.
 *
 * A Map would be shorter, and costs much more. V8 gives a Map a new table whenever entries have
 * come and gone as often as it has room, and the dead table refers to the next one. Once one of
 * them is old, all that follow survive each minor collection, and with them whatever was in flight
 * when its table died: nearly everything that a node allocates for its requests. Copying that took
 * a third of the processor time of deposits.
 */
const firstPlaces = 256

/** A value, with the number of its token. */
interface Place<Value> {
  readonly number: number
  readonly value: Value
}

export class InFlight<Value extends object> {
  private places = Array.from<Place<Value> | undefined>({ length: firstPlaces })
  private next = 0
  private count = 0

  get size(): number {
    return this.count
  }

  /** Adds a value; returns its token: a number in base 36 that no other value has had. */
  add(value: Value): string {
    if (2 * ++this.count > this.places.length) this.grow()
    // At most half of the places are taken, so that one of the next numbers has a free one.
    while (this.places[this.placeOf(this.next)] !== undefined) this.next++
    const number = this.next++
    this.places[this.placeOf(number)] = { number, value }
    return number.toString(36)
  }

  /** The value with this token; undefined if it has ended, or never was. */
  get(token: string): Value | undefined {
    const number = Number.parseInt(token, 36)
    const found = this.places[this.placeOf(number)]
    return found?.number === number ? found.value : undefined
  }

  /** Ends the value with this token; false if it has ended before. */
  delete(token: string): boolean {
    if (this.get(token) === undefined) return false
    this.places[this.placeOf(Number.parseInt(token, 36))] = undefined
    this.count--
    return true
  }

  /** The values of this moment, the first first, without those that have ended by their turn. */
  *[Symbol.iterator](): Iterator<readonly [string, Value]> {
    const places = this.places.filter((place) => place !== undefined)
    for (const { number } of places.sort((one, other) => one.number - other.number)) {
      const token = number.toString(36)
      const value = this.get(token)
      if (value !== undefined) yield [token, value]
    }
  }

  /** Ends all values; returns them. */
  clear(): ReadonlyArray<Value> {
    const all = [...this].map(([, value]) => value)
    this.places = Array.from({ length: firstPlaces })
    this.count = 0
    return all
  }

  private placeOf(number: number): number {
    return number % this.places.length
  }

  /** Twice as many places: numbers that differ in the smaller table differ in the larger one. */
  private grow(): void {
    const { places } = this
    this.places = Array.from({ length: 2 * places.length })
    for (const place of places) {
      if (place !== undefined) this.places[this.placeOf(place.number)] = place
    }
  }
}

// Domains of a mesh as the map reads them, for tests.
export function meshRows({ domains, size, stage = () => 0 }) {
  return Array.from({ length: domains }, (_, domain) => ({
    first: domain,
    count: 1,
    experts: "",
    seats: Array.from({ length: size }, (__, place) => {
      const rank = domain * size + place;
      return { rank, place, stage: stage(rank), tint: 4, experts: "E" + rank };
    }),
  }));
}

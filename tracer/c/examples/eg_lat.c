// SPDX-License-Identifier: Apache-2.0 OR MIT
/* <lat/lat.h> with a schema: events, a span that ends with its scope, text, a sequence, a mark. */
#include "eg.h"

#include <stdio.h>

static unsigned work(unsigned item)
{
    LAT_SPAN_EG_WORK(item); /* WORK_BEGIN here, WORK_END wherever the function returns */
    unsigned sum = 0;
    for (unsigned i = 0; i < 1000; i++)
        sum += i * item;
    return sum;
}

int main(void)
{
    const double values[] = {1.5, 2.5};
    unsigned sum = 0;
    lat_mark("the work begins");
    for (unsigned item = 0; item < 5; item++) {
        lat_eg_queue(5 - item);
        sum += work(item);
    }
    lat_eg_found("needle", 3);
    lat_eg_sample(values, 2);
    /* LAT_TRACE evaluates its arguments only if the event is recorded. */
    LAT_TRACE(eg, found, "costly to find", sum);
    printf("%s\n", lat_recording() ? "recorded" : "nobody records");
    return 0;
}
